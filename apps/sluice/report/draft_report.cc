#include "report/draft_report.h"

#include <fmt/format.h>

#include "engine/draft/drafting.h"

namespace sluice::app {

std::string drafts_text(const engine::Drafting& drafting) {
  if (const std::string why = drafting.why_off(); !why.empty()) return "off " + why;
  if (!drafting.on()) return "";
  const engine::DraftCounts& counts = drafting.counts();
  if (counts.drafted == 0) return "none: none was expected to pay";
  return fmt::format("{} tokens in {} steps, {} accepted", counts.drafted, counts.passes, counts.accepted);
}

Json draft_counts_json(const engine::DraftCounts& counts) {
  return {{"draft_n", counts.drafted}, {"draft_n_accepted", counts.accepted}, {"draft_steps", counts.passes}};
}

Json drafts_json(const engine::Drafting& drafting) {
  Json json = draft_counts_json(drafting.counts());
  const std::string why = drafting.why_off();
  json["off"] = !why.empty() ? Json(why) : drafting.on() ? Json(nullptr) : Json("not asked for");
  return json;
}

}  // namespace sluice::app
