// The path that any processor runs.
#include "generic.h"

const Path *portable_path() {
    static const Path path = {&GENERIC_ARRAYS, nullptr, &GENERIC_TILES, nullptr,
                              nullptr,         nullptr, nullptr,        generic_largest};
    return &path;
}
