#include "engine/draft/draft_kind.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/setting.h"
#include "base/unknown_name.h"

namespace sluice::engine {
namespace {

constexpr std::string_view kDraftNames[] = {"none", "ngram"};

}  // namespace

DraftKind parse_draft(std::string_view text) {
  const auto found = std::ranges::find(kDraftNames, text);
  if (found != std::end(kDraftNames)) return static_cast<DraftKind>(found - std::begin(kDraftNames));
  throw unknown_name(Setting::kDraft, text, {std::begin(kDraftNames), std::end(kDraftNames)},
                     "unknown kind of draft", "leave " + Setting::kDraft + " out");
}

std::string_view draft_name(DraftKind kind) { return kDraftNames[static_cast<std::size_t>(kind)]; }

}  // namespace sluice::engine
