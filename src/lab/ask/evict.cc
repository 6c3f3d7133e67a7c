// `evict`: a trace of requests through one cache with room for `capacity` experts of one size, event by
// event. SPEC §1.7.
#include <algorithm>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/core/equal_sizes.h"
#include "experts/core/requests.h"
#include "experts/registry.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"
#include "lab/replay/expert_names.h"

namespace sluice::lab {
namespace {
namespace evict_function {

using experts::ExpertId;

constexpr std::string_view kPolicies[] = {"fifo", "lru", "lfu", "marking", "belady", "belady_bypass"};

constexpr Field kIn[] = {
    {"policy", "fifo, lru, lfu, marking, belady or belady_bypass"},
    {"capacity", "experts that fit, an integer >= 0"},
    {"requests", "an array of events, each an id or an array of ids (a set); ids are integers >= 0"},
    {"seed", "an integer; marking draws its victims from it, the others ignore it"},
};
constexpr Field kOut[] = {
    {"hits", "ids found resident, over all events"},
    {"misses", "ids not found resident"},
    {"evicted", "ids resident before an event and not after it, in order"},
    {"resident", "ids resident at the end, ascending"},
};

struct Requests {
  ExpertNames names;
  experts::RequestList list;
};

Requests parse_requests(const JsonObject& line) {
  Requests requests;
  std::vector<std::size_t> ends;  // where each event ends among all ids
  std::vector<std::int64_t> ids;
  for (const Json& event : array_of(line, "requests", kIn[2].text)) {
    const std::string place = "requests[" + std::to_string(ends.size()) + "]";
    if (event.is_array()) {
      for (std::size_t i = 0; i < event.size(); ++i)
        ids.push_back(integer_at(line, place + "[" + std::to_string(i) + "]", event[i], 0, kMostId));
    } else if (event.is_number()) {
      ids.push_back(integer_at(line, place, event, 0, kMostId));
    } else {
      fail_at(line, place, "an id, an integer >= 0, or an array of ids", event);
    }
    ends.push_back(ids.size());
  }
  requests.names = ExpertNames(ids);
  std::vector<ExpertId> event;
  std::size_t begin = 0;
  for (std::size_t end : ends) {
    event.clear();
    for (std::size_t i = begin; i < end; ++i) event.push_back(requests.names.expert(ids[i]));
    requests.list.add_event(event);
    begin = end;
  }
  return requests;
}

Json answer(const JsonObject& line) {
  const std::string policy = line.string("policy");
  if (std::ranges::count(kPolicies, policy) == 0) line.fail("policy", kIn[0].text);
  const std::int64_t capacity = line.integer("capacity", 0, kMostId);
  const Json* seed = line.find("seed");
  if (seed == nullptr || !seed->is_number_integer()) line.fail("seed", kIn[3].text);
  const Requests requests = parse_requests(line);

  const experts::EqualSizes sizes({.full = 1});
  experts::Residency residency(
      experts::make_cache(policy, {.seed = seed->get<std::uint64_t>(), .future = &requests.list}), sizes,
      static_cast<Bytes>(capacity));
  std::uint64_t hits = 0, misses = 0;
  Json evicted = Json::array(), resident = Json::array();
  for (std::size_t e = 0; e < requests.list.events(); ++e) {
    const experts::EventOutcome& outcome = residency.on_event(requests.list.event(e));
    hits += outcome.hits.size();
    misses += outcome.misses.size();
    for (const experts::Eviction& gone : outcome.evicted) evicted.push_back(requests.names.id(gone.id));
  }
  for (const experts::Placed& entry : residency.resident()) resident.push_back(requests.names.id(entry.id));
  return {
      {"hits", hits}, {"misses", misses}, {"evicted", std::move(evicted)}, {"resident", std::move(resident)}};
}

}  // namespace evict_function
}  // namespace

const Function kEvict = {.name = "evict",
                         .section = "1.7",
                         .in = evict_function::kIn,
                         .out = evict_function::kOut,
                         .answer = evict_function::answer};

}  // namespace sluice::lab
