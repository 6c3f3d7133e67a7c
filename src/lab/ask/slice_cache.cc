// `slice_cache`: MSB and LSB slices through one slice-lru, step by step. SPEC §4.3.
#include <set>
#include <vector>

#include "experts/cache/slices/slice_lru.h"
#include "experts/core/equal_sizes.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"
#include "lab/replay/expert_names.h"

namespace sluice::lab {
namespace {
namespace slice_cache_function {

using experts::ExpertId, experts::SliceLru;

constexpr Field kIn[] = {
    {"capacity", "bytes that fit, an integer >= 0"},
    {"msb_bytes", "bytes of an expert's MSB slice, an integer >= 0"},
    {"lsb_bytes", "bytes of an expert's LSB slice, an integer >= 0"},
    {"lsb_miss", "fetch or skip"},
    {"steps", "an array of {sel: [ids in score order], crit: [ids, some of sel]}; ids are integers >= 0"},
};
constexpr Field kOut[] = {
    {"events", "per step the slices asked for, in order: [id, M or L, hit, miss, stream or skip]"},
    {"msb", "ids whose MSB is resident at the end, least recently used first"},
    {"lsb", "ids whose LSB is resident at the end, least recently used first"},
};

constexpr Bytes kMostBytes = Bytes{1} << 60;

struct Step {
  std::vector<std::int64_t> sel, crit;
};

// A set in the given order: repeats count once.
std::vector<std::int64_t> parse_ids(const JsonObject& line, const std::string& place, const Json& step,
                                    const char* key) {
  const std::string here = place + "." + key;
  if (!step.contains(key) || !step.at(key).is_array())
    fail_at(line, here, "an array of ids", step.contains(key) ? step.at(key) : Json());
  std::vector<std::int64_t> ids;
  std::set<std::int64_t> seen;
  const Json& list = step.at(key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::int64_t id = integer_at(line, here + "[" + std::to_string(i) + "]", list[i], 0, kMostId);
    if (seen.insert(id).second) ids.push_back(id);
  }
  return ids;
}

std::vector<Step> parse_steps(const JsonObject& line) {
  std::vector<Step> steps;
  for (const Json& json : array_of(line, "steps", kIn[4].text)) {
    const std::string place = "steps[" + std::to_string(steps.size()) + "]";
    if (!json.is_object()) fail_at(line, place, "an object {sel, crit}", json);
    Step step{parse_ids(line, place, json, "sel"), parse_ids(line, place, json, "crit")};
    const std::set<std::int64_t> selected(step.sel.begin(), step.sel.end());
    for (std::int64_t id : step.crit) {
      if (!selected.contains(id)) fail_at(line, place + ".crit", "ids of sel alone", Json(id));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

const char* word(SliceLru::Fate fate) {
  switch (fate) {
    case SliceLru::Fate::kHit:
      return "hit";
    case SliceLru::Fate::kMiss:
      return "miss";
    case SliceLru::Fate::kStream:
      return "stream";
    case SliceLru::Fate::kSkip:
      break;
  }
  return "skip";
}

Json answer(const JsonObject& line) {
  const auto bytes = [&](const char* key) {
    return static_cast<Bytes>(line.integer(key, 0, static_cast<std::int64_t>(kMostBytes)));
  };
  const Bytes capacity = bytes("capacity");
  const experts::EqualSizes sizes({.msb = bytes("msb_bytes"), .lsb = bytes("lsb_bytes")});
  const std::string lsb_miss = line.string("lsb_miss");
  if (lsb_miss != "fetch" && lsb_miss != "skip") line.fail("lsb_miss", kIn[3].text);
  const std::vector<Step> steps = parse_steps(line);

  std::vector<std::int64_t> ids;
  for (const Step& step : steps) ids.insert(ids.end(), step.sel.begin(), step.sel.end());
  const ExpertNames names(ids);
  const auto experts_of = [&](const std::vector<std::int64_t>& some) {
    std::vector<ExpertId> all;
    for (std::int64_t id : some) all.push_back(names.expert(id));
    return all;
  };
  SliceLru cache({.lsb_miss = lsb_miss == "skip" ? experts::LsbMiss::kSkip : experts::LsbMiss::kFetch});
  Json events = Json::array();
  for (const Step& step : steps) {
    cache.on_event(experts_of(step.sel), experts_of(step.crit), sizes, capacity);
    Json event = Json::array();
    for (const SliceLru::Request& request : cache.requests()) {
      event.push_back(
          {names.id(request.id), request.part == experts::Part::kMsb ? "M" : "L", word(request.fate)});
    }
    events.push_back(std::move(event));
  }
  const auto ids_of = [&](const std::vector<ExpertId>& order) {
    Json all = Json::array();
    for (ExpertId id : order) all.push_back(names.id(id));
    return all;
  };
  return {{"events", std::move(events)}, {"msb", ids_of(cache.msb())}, {"lsb", ids_of(cache.lsb())}};
}

}  // namespace slice_cache_function
}  // namespace

const Function kSliceCache = {.name = "slice_cache",
                              .section = "4.3",
                              .in = slice_cache_function::kIn,
                              .out = slice_cache_function::kOut,
                              .answer = slice_cache_function::answer};

}  // namespace sluice::lab
