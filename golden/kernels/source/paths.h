// The paths of this processor.
#pragma once

#include "path.h"

const Path *path_numbered(int path);
