// NVIDIA's driver as far as kernels are launched through it: it checks that a context is current, and prints its calls.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int NOT_FOUND = 500, INVALID_CONTEXT = 201;
thread_local void *current = nullptr;
char primary, module, function;

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version) { return *version = 12090, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetName(char *name, int size, int) { return std::snprintf(name, size, "a card of paper"), 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) { return *value = attribute == 75 ? 9 : 0, 0; }  // 9.0
int cuCtxGetCurrent(void **context) { return *context = current, 0; }
int cuCtxSetCurrent(void *context) { return current = context, 0; }
int cuDevicePrimaryCtxRetain(void **context, int) { return *context = &primary, std::puts("retain"), 0; }

int cuGetErrorString(int code, const char **text) {
    *text = code == INVALID_CONTEXT ? "invalid device context" : "another error";
    return 0;
}

int cuModuleLoadData(void **loaded, const void *image) {
    if (!current) return INVALID_CONTEXT;
    std::printf("load %.7s\n", static_cast<const char *>(image));
    return *loaded = &module, 0;
}

int cuModuleGetFunction(void **found, void *of, const char *name) {
    std::printf("function %s %d\n", name, of == &module);
    return *found = &function, 0;
}

int cuLaunchKernel(void *kernel, unsigned x, unsigned y, unsigned z, unsigned width, unsigned height, unsigned depth,
                   unsigned shared, void *stream, void **arguments, void **extra) {
    if (!current) return INVALID_CONTEXT;
    uint32_t first;
    std::memcpy(&first, arguments[0], sizeof first);
    std::printf("launch %d (%u %u %u) (%u %u %u) %u %p %#x %p\n", kernel == &function, x, y, z, width, height, depth,
                shared, stream, first, static_cast<void *>(extra));
    std::fflush(stdout);
    return 0;
}

int cuGetProcAddress_v2(const char *name, void **found, int, uint64_t, int *status) {
    *found = dlsym(RTLD_DEFAULT, name);
    if (!*found) {  // this library may have been opened for itself alone
        Dl_info about;
        dladdr(reinterpret_cast<void *>(&cuInit), &about);
        *found = dlsym(dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD), name);
    }
    if (status) *status = *found ? 0 : 1;
    return *found ? 0 : NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, found, version, flags, nullptr);
}
}
