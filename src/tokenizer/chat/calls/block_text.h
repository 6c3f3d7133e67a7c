// The text of a block of calls while it is read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tokenizer/chat/calls/marks.h"

namespace sluice::tokenizer {

enum class BlockRead {
  kMore,   // nothing can be said before more text comes
  kGoOn,   // something was read
  kEnded,  // this part is complete
  kBroken  // it cannot go on with the text that stands here
};

// Thread-compatible.
class BlockText {
 public:
  std::string held;   // tagged; nothing of it was read
  std::string taken;  // read, but neither given out nor understood as a whole: what is text if it breaks off

  void take(std::size_t bytes) {
    taken += std::string_view(held).substr(0, bytes);
    held.erase(0, bytes);
    searched_ = 0;
  }
  // Blanks and then the rest of what is held.
  std::size_t blanks() const;
  std::string_view behind_blanks() const { return std::string_view(held).substr(blanks()); }

  // Takes blanks and a mark; kBroken if another text stands here. An empty mark stands everywhere.
  BlockRead expect(const std::string& mark);
  // Where a mark is; npos before it has come. Bytes are searched once.
  std::size_t find(const std::string& mark);

 private:
  std::size_t searched_ = 0;
};

// Whether a text, blanks around it left out, can be the name of a tool or parameter, or its beginning.
bool may_be_name(std::string_view text);
std::string_view without_blanks_around(std::string_view text);

}  // namespace sluice::tokenizer
