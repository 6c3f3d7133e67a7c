// What became of drafts, for people and as JSON.
#pragma once

#include <string>

#include "base/json/json.h"
#include "engine/draft/draft_counts.h"

namespace sluice::engine {
class Drafting;
}

namespace sluice::app {

// "120 tokens in 31 steps, 96 accepted", or why there are none; empty where none were asked for.
std::string drafts_text(const engine::Drafting& drafting);
// {draft_n, draft_n_accepted, draft_steps, off}: `off` is null, or why there are none.
Json drafts_json(const engine::Drafting& drafting);
// The first three alone.
Json draft_counts_json(const engine::DraftCounts& counts);

}  // namespace sluice::app
