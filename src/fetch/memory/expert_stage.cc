#include "fetch/memory/expert_stage.h"

#include <algorithm>
#include <utility>

namespace sluice::fetch {
namespace {

using enum ExpertStage;

constexpr std::string_view kNames[kExpertStages] = {"resting", "ready",    "waiting",   "fetching", "in use",
                                                    "ahead",   "updating", "returning", "withdrawn"};

// Every step, with its cause.
constexpr std::pair<ExpertStage, ExpertStage> kLegal[] = {
    {kResting, kReady},       // an event uses it and finds all that it needs
    {kResting, kWaiting},     // an event uses it and misses something
    {kResting, kAhead},       // a prefetch starts
    {kReady, kInUse},         // handed out
    {kWaiting, kFetching},    // its buffers fit: its work starts
    {kFetching, kInUse},      // its view is complete: handed out
    {kInUse, kResting},       // the pin goes
    {kAhead, kFetching},      // an event uses what was read ahead
    {kAhead, kWithdrawn},     // no event does, or the prefetch has failed
    {kResting, kUpdating},    // a cache has brought it in
    {kUpdating, kResting},    // it is there, or its reads have failed
    {kUpdating, kFetching},   // an event uses it already …
    {kUpdating, kWithdrawn},  // … and more of it than is on its way
    {kResting, kReturning},   // a device gives it back
    {kReturning, kResting},   // it is there, or will never be
    {kWithdrawn, kResting},   // nobody writes to its buffers any more
    {kReady, kResting},       // the event was abandoned …
    {kWaiting, kResting},     // …
    {kFetching, kResting},    // …
    {kAhead, kResting},       // … and all read-ahead with it
};

}  // namespace

bool may_follow(ExpertStage from, ExpertStage to) {
  return std::ranges::find(kLegal, std::pair{from, to}) != std::end(kLegal);
}

std::string_view stage_name(ExpertStage stage) { return kNames[static_cast<int>(stage)]; }

}  // namespace sluice::fetch
