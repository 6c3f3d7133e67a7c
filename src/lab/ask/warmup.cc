// `warmup`: the slices that outlive a prompt. SPEC §4.6.
#include <set>
#include <vector>

#include "experts/cache/slices/slice_warmup.h"
#include "experts/core/equal_sizes.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"
#include "lab/replay/expert_names.h"

namespace sluice::lab {
namespace {
namespace warmup_function {

using experts::ExpertId, experts::Part, experts::Slice, experts::SliceWarmup;

constexpr Field kIn[] = {
    {"capacity", "slices that fit, an integer >= 0"},
    {"kappa", "LSBs critical for a smaller share of their expert's tokens leave first, a number >= 0"},
    {"rho", "LSBs an MSB that may outlive the prompt, a number >= 0"},
    {"layers",
     "an array of layers, each an array of {id, freq, crit}: integers >= 0, freq >= 1; ids are unique over "
     "all "
     "layers"},
};
constexpr Field kOut[] = {
    {"evictions", "slices that left during the prompt, in order: [id, M or L]"},
    {"trimmed", "slices that left at its end: [id, L], by ascending id"},
    {"msb", "ids whose MSB is resident, least recently used first"},
    {"lsb", "ids whose LSB is resident, least recently used first"},
};

struct Counts {
  std::int64_t id = 0, freq = 0, crit = 0;
};

std::int64_t parse_count(const JsonObject& line, const std::string& place, const Json& expert,
                         const char* key, std::int64_t min, std::int64_t max) {
  return integer_at(line, place + "." + key, expert.contains(key) ? expert.at(key) : Json(), min, max);
}

std::vector<std::vector<Counts>> parse_layers(const JsonObject& line) {
  std::vector<std::vector<Counts>> layers;
  std::set<std::int64_t> seen;
  for (const Json& layer : array_of(line, "layers", kIn[3].text)) {
    const std::string place = "layers[" + std::to_string(layers.size()) + "]";
    if (!layer.is_array()) fail_at(line, place, "an array of {id, freq, crit}", layer);
    std::vector<Counts> experts;
    for (const Json& expert : layer) {
      const std::string here = place + "[" + std::to_string(experts.size()) + "]";
      if (!expert.is_object()) fail_at(line, here, "an object {id, freq, crit}", expert);
      experts.push_back({parse_count(line, here, expert, "id", 0, kMostId),
                         parse_count(line, here, expert, "freq", 1, kMostInteger),
                         parse_count(line, here, expert, "crit", 0, kMostInteger)});
      if (!seen.insert(experts.back().id).second)
        fail_at(line, here + ".id", "an id that stands once in all layers", expert.at("id"));
    }
    layers.push_back(std::move(experts));
  }
  return layers;
}

Json answer(const JsonObject& line) {
  const auto capacity = static_cast<Bytes>(line.integer("capacity", 0, kMostInteger));
  SliceWarmup warmup({.kappa = line.real("kappa", 0, kMostNumber), .rho = line.real("rho", 0, kMostNumber)});
  const std::vector<std::vector<Counts>> layers = parse_layers(line);
  std::vector<std::int64_t> ids;
  for (const std::vector<Counts>& layer : layers)
    for (const Counts& expert : layer) ids.push_back(expert.id);
  const ExpertNames names(ids);

  const experts::EqualSizes sizes({.msb = 1, .lsb = 1});
  for (const std::vector<Counts>& layer : layers) {
    for (const Counts& expert : layer)
      warmup.count(names.expert(expert.id), static_cast<std::uint64_t>(expert.freq),
                   static_cast<std::uint64_t>(expert.crit));
    for (const Counts& expert : layer) warmup.admit(names.expert(expert.id), sizes, capacity);
  }
  Json evictions = Json::array(), trimmed = Json::array();
  for (const Slice& slice : warmup.evictions())
    evictions.push_back({names.id(slice.id), slice.part == Part::kMsb ? "M" : "L"});
  for (ExpertId id : warmup.trim(sizes)) trimmed.push_back({names.id(id), "L"});
  const auto ids_of = [&](const std::vector<ExpertId>& order) {
    Json all = Json::array();
    for (ExpertId id : order) all.push_back(names.id(id));
    return all;
  };
  return {{"evictions", std::move(evictions)},
          {"trimmed", std::move(trimmed)},
          {"msb", ids_of(warmup.msb_order())},
          {"lsb", ids_of(warmup.lsb_order())}};
}

}  // namespace warmup_function
}  // namespace

const Function kWarmup = {.name = "warmup",
                          .section = "4.6",
                          .in = warmup_function::kIn,
                          .out = warmup_function::kOut,
                          .answer = warmup_function::answer};

}  // namespace sluice::lab
