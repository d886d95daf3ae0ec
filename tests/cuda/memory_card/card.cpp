// Tensors that say they are on cuda:0 and live in this machine's memory: every operator on them runs on the CPU.
// What a card refuses is refused: operands on two devices. What makes a card wait is counted.

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <set>

namespace {

const c10::Device CARD(c10::DeviceType::CUDA, 0);
std::atomic<int64_t> waits{0};

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
    c10::Device getDevice() const override { return CARD; }
    c10::Device exchangeDevice(c10::Device) const override { return CARD; }
    c10::Stream getStream(c10::Device) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, CARD); }
    c10::Stream exchangeStream(c10::Stream) const noexcept override { return c10::Stream(c10::Stream::DEFAULT, CARD); }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)

struct CUDAHooks final : at::CUDAHooksInterface {
    explicit CUDAHooks(at::CUDAHooksArgs) {}
    void init() const override {}
    bool hasCUDA() const override { return true; }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return 1; }
    c10::DeviceIndex getCurrentDevice() const override { return 0; }
};

void drop(void *owner) { delete static_cast<c10::Storage *>(owner); }

// A storage of the same memory on another device; it keeps the given one alive.
c10::Storage relabelled(const c10::Storage &storage, c10::Device device) {
    c10::DataPtr data(const_cast<void *>(storage.data()), new c10::Storage(storage), drop, device);
    return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), nullptr, false);
}

at::Tensor tensor_of(const c10::Storage &storage, const at::Tensor &like) {
    const auto key = storage.device().is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
    auto result = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
    auto *impl = result.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(like.sizes(), like.strides());
    impl->set_storage_offset(like.storage_offset());
    result._set_neg(like.is_neg());
    return result;
}

struct Call {
    std::vector<std::pair<at::Tensor, at::Tensor>> pairs;  // on the card, on the CPU
    std::vector<std::pair<c10::Storage, c10::Storage>> storages;

    at::Tensor down(const at::Tensor &card) {
        for (auto &[there, here] : pairs)
            if (there.is_same(card)) return here;
        c10::Storage mine;
        for (auto &[there, here] : storages)
            if (there.unsafeGetStorageImpl() == card.storage().unsafeGetStorageImpl()) mine = here;
        if (!mine) {
            mine = relabelled(card.storage(), c10::kCPU);
            mine.unsafeGetStorageImpl()->set_allocator(c10::GetAllocator(c10::kCPU));
            mine.unsafeGetStorageImpl()->set_resizable(true);
            storages.emplace_back(card.storage(), mine);
        }
        auto here = tensor_of(mine, card);
        pairs.emplace_back(card, here);
        return here;
    }

    at::Tensor up(const at::Tensor &here) {
        for (auto &[there, mine] : pairs)
            if (mine.is_same(here)) return there;
        for (auto &[there, mine] : storages)
            if (mine.unsafeGetStorageImpl() == here.storage().unsafeGetStorageImpl()) return tensor_of(there, here);
        return tensor_of(relabelled(here.storage(), CARD), here);
    }

    // Outputs that an operator has resized or given another memory.
    void write_back() {
        for (auto &[there, here] : pairs) {
            const bool moved = there.storage().data() != here.storage().data();
            if (!moved && there.sizes() == here.sizes() && there.strides() == here.strides()) continue;
            auto *impl = there.unsafeGetTensorImpl();
            if (moved) impl->set_storage_keep_dtype(relabelled(here.storage(), CARD));
            impl->set_sizes_and_strides(here.sizes(), here.strides());
            impl->set_storage_offset(here.storage_offset());
        }
    }
};

// Lengths of packed sequences stay on the CPU.
const std::set<std::string> MIXED{
    "aten::copy_", "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::set_",
    "aten::_pack_padded_sequence", "aten::_pack_padded_sequence_backward"};
const std::set<std::string> WAITING{
    "aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::_unique2"};

void on_the_cpu(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
    const auto &schema = op.schema();
    const auto count = schema.arguments().size();
    const auto first = stack->size() - count;
    Call call;
    bool any_card = false, names_device = false, wants_card = false;
    at::Tensor foreign;
    auto lower = [&](at::Tensor tensor) {
        if (!tensor.defined()) return tensor;
        if (tensor.is_cuda()) { any_card = true; return call.down(tensor); }
        if (tensor.dim() > 0) foreign = tensor;
        return tensor;
    };
    const auto &name = schema.name();
    if (name == "aten::copy_") {
        const auto &self = (*stack)[first].toTensor();
        if (self.is_cpu()) waits++;
    }
    if (WAITING.count(name)) waits++;
    for (size_t i = 0; i < count; i++) {
        auto &value = (*stack)[first + i];
        if (value.isTensor()) {
            value = lower(value.toTensor());
        } else if (value.isTensorList()) {
            std::vector<at::Tensor> list;
            for (const at::Tensor each : value.toTensorList()) list.push_back(lower(each));
            value = list;
        } else if (value.isOptionalTensorList()) {
            c10::List<std::optional<at::Tensor>> list;
            for (const std::optional<at::Tensor> each : value.toOptionalTensorList()) {
                waits += each && each->scalar_type() == at::kBool;  // how many are true decides a shape
                list.push_back(each ? std::optional<at::Tensor>(lower(*each)) : each);
            }
            value = list;
        } else if (value.isStorage()) {
            value = relabelled(value.toStorage(), c10::kCPU);
        } else if (value.isDevice()) {
            names_device = true;
            wants_card |= value.toDevice().is_cuda();
            value = c10::Device(c10::kCPU);
        }
    }
    TORCH_CHECK(
        !(any_card && foreign.defined()) || MIXED.count(name),
        "Expected all tensors to be on the same device, but ", name, " got one on cuda:0 and one on cpu");
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    call.write_back();
    const bool raises = names_device ? wants_card : any_card;
    waits += any_card && !raises;
    for (size_t i = 0; i < schema.returns().size(); i++) {
        auto &value = (*stack)[first + i];
        if (value.isTensor()) {
            const auto tensor = value.toTensor();
            if (name == "aten::_pack_padded_sequence" && i == 1) continue;
            if (tensor.defined() && raises && !(name == "aten::copy_" && i == 0 && foreign.defined() && tensor.is_same(foreign)))
                value = call.up(tensor);
        } else if (value.isTensorList()) {
            std::vector<at::Tensor> list;
            for (const at::Tensor each : value.toTensorList()) list.push_back(each.defined() ? call.up(each) : each);
            value = list;
        }
    }
}

at::Tensor onto_the_card(const at::Tensor &x) { return tensor_of(relabelled(x.storage(), CARD), x); }
at::Tensor off_the_card(const at::Tensor &x) { return tensor_of(relabelled(x.storage(), c10::kCPU), x); }
int64_t count_of_waits() { return waits; }

struct Quiet final : c10::WarningHandler {
    void process(const c10::Warning &) override {}
};

}  // namespace

namespace at {
// Before those of a PyTorch for CUDA.
C10_REGISTER_CLASS_WITH_PRIORITY(CUDAHooksRegistry, CUDAHooks, c10::REGISTRY_PREFERRED, CUDAHooks)
}

// Each by itself: some of those that serve every device ask for kernels of the device's own.
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
    using Key = c10::DispatchKey;
    Quiet quiet;  // about kernels that serve every device, which these replace on the card
    c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    for (const auto &name : c10::Dispatcher::singleton().getAllOpNames()) {
        if (name.getNamespace() != "aten") continue;
        const auto op = c10::Dispatcher::singleton().findOp(name);
        const bool composed = op->hasKernelForDispatchKey(Key::CompositeImplicitAutograd);
        const bool has_kernel = op->hasKernelForDispatchKey(Key::CPU);
        const bool serves = has_kernel
            || op->hasKernelForDispatchKey(Key::CompositeExplicitAutograd)
            || op->hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional);
        if (has_kernel || (serves && !composed))
            m.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
    }
}

TORCH_LIBRARY(card, m) {
    m.def("up(Tensor x) -> Tensor", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(onto_the_card)));
    m.def("down(Tensor x) -> Tensor", torch::dispatch(c10::DispatchKey::CUDA, TORCH_FN(off_the_card)));
    m.def("waits() -> int", TORCH_FN(count_of_waits));
}
