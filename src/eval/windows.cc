#include "eval/windows.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::eval {

std::vector<Window> cut_windows(std::size_t tokens, std::size_t length, std::size_t stride) {
  SLUICE_CHECK(stride >= 1 && stride <= length);
  std::vector<Window> windows;
  std::size_t done = 0;  // tokens of the text that have been scored, or never will be
  for (std::size_t begin = 0; done < tokens; begin += stride) {
    const std::size_t end = std::min(begin + length, tokens), scored = std::max(done, begin + 1);
    if (scored < end) windows.push_back({begin, end, scored});
    done = end;
  }
  return windows;
}

}  // namespace sluice::eval
