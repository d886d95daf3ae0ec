#include "path.h"
const Path *avx512fp16_path() { return nullptr; }
