// Work cut into pieces for a few threads that stay alive between calls.
#pragma once

#include <cstdint>
#include <functional>

// Call work(piece) once for every piece below `pieces`, on up to `threads` threads, this one included. A call made
// while another is running, and one inside a forked child, does all its pieces itself if no helper is free.
void run_pieces(int threads, int64_t pieces, const std::function<void(int64_t)> &work);
