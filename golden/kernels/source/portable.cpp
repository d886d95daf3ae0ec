// The path that any processor runs.
#include "generic_counts.h"

namespace {

Path with_modes() {
    Path path = {&GENERIC_ARRAYS, nullptr,           generic_largest,   generic_smallest,
                 generic_slide,   generic_correlate, {{&GENERIC_TILES}}, {&GENERIC_FLUSHED_TILES}};
    add_generic_modes<ScalarPhilox>(path);
    return path;
}

}  // namespace

const Path *portable_path() {
    static const Path path = with_modes();
    return &path;
}
