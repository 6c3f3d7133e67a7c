// The flag that says what proposes tokens ahead.
#pragma once

#include <cstddef>
#include <string>

#include "engine/plan/draft_kind.h"

namespace sluice::app {

class Command;

struct DraftFlag {
  std::string name;  // empty: nobody has said

  // `usual` where nobody has said. Error(kUsage).
  engine::DraftKind kind(engine::DraftKind usual = engine::DraftKind::kNone) const;
};

void add_draft_flag(Command& command, DraftFlag& flag);
// Tokens of a step that decodes one of each of this many sequences, for engine::generation_logit_rows().
std::size_t decoded_tokens(std::size_t sequences, engine::DraftKind kind);

}  // namespace sluice::app
