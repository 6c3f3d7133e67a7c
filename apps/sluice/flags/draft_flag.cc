#include "flags/draft_flag.h"

#include "base/setting.h"
#include "flags/command_line.h"
#include "flags/sampling_flags.h"

namespace sluice::app {

engine::DraftKind DraftFlag::kind(engine::DraftKind usual) const {
  return name.empty() ? usual : engine::parse_draft(name);
}

void add_draft_flag(Command& command, DraftFlag& flag) {
  command
      .add_option(Setting::kDraft, &flag.name,
                  "Compute tokens ahead where the text repeats itself and that is faster; the answer stays "
                  "the same: ngram, none; default: none (docs/drafts.md)")
      ->group(kSamplingGroup);
}

std::size_t decoded_tokens(std::size_t sequences, engine::DraftKind kind) {
  return sequences * (kind == engine::DraftKind::kNone ? 1 : 1 + engine::kMostDrafts);
}

}  // namespace sluice::app
