#include "engine/plan/device_profile.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::engine {
namespace {

constexpr double kMostSeconds = 1e6;
constexpr double kLeastRate = 1, kMostRate = 1e15;  // bytes a second
constexpr std::int64_t kMostStepTokens = 1 << 20;
constexpr std::int64_t kMostExpertBytes = std::int64_t{1} << 50;

experts::ComputeTime compute_time(const TimesOfTokens& times) {
  experts::ComputeTime time;
  for (const auto& [tokens, one] : times) time.measured.emplace_back(tokens, one.median);
  return time;
}

Json to_json(const LinkSpeed& speed) {
  return {{"bytes_per_s", speed.bytes_per_s}, {"latency_s", speed.latency_s}};
}

LinkSpeed link_speed_of(const JsonObject& object) {
  return {object.real("bytes_per_s", kLeastRate, kMostRate), object.real("latency_s", 0, kMostSeconds)};
}

enum class Least : std::uint8_t { kNone, kOne };

// Reads times that do not fall as tokens grow more.
TimesOfTokens rising_times(const JsonObject& object, const std::string& key, Least least = Least::kOne) {
  TimesOfTokens times = times_of_tokens(object, key);
  const auto falls = [](const auto& a, const auto& b) { return a.second.median > b.second.median; };
  if ((times.empty() && least == Least::kOne) || std::ranges::adjacent_find(times, falls) != times.end())
    object.fail(key, least == Least::kOne ? "at least one entry, and no time below that of fewer tokens"
                                          : "no time below that of fewer tokens");
  return times;
}

}  // namespace

Measured measured(std::vector<double> samples) {
  SLUICE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<std::size_t>(std::lround(share * static_cast<double>(samples.size() - 1)))];
  };
  return {at(0.5), (at(0.9) - at(0.1)) / 2};
}

Json to_json(const Measured& value) { return {{"median", value.median}, {"spread", value.spread}}; }

Measured measured_of(const JsonObject& object) {
  return {object.real("median", 0, kMostSeconds), object.real("spread", 0, kMostSeconds)};
}

Json to_json(const TimesOfTokens& times) {
  Json list = Json::array();
  for (const auto& [tokens, time] : times) {
    Json entry = to_json(time);
    entry["tokens"] = tokens;
    list.push_back(std::move(entry));
  }
  return list;
}

TimesOfTokens times_of_tokens(const JsonObject& object, const std::string& key) {
  const Json* const list = object.find(key);
  if (list == nullptr || !list->is_array()) object.fail(key, "an array");
  TimesOfTokens times;
  for (const Json& entry : *list) {
    const JsonObject one(entry, object.name() + ": " + key);
    const auto tokens = static_cast<std::uint32_t>(one.integer("tokens", 1, kMostStepTokens));
    if (!times.empty() && tokens <= times.back().first) one.fail("tokens", "ascending numbers");
    times.emplace_back(tokens, measured_of(one));
  }
  return times;
}

void make_monotone(TimesOfTokens& times) {
  double least = 0;
  for (auto& [tokens, time] : times) least = time.median = std::max(time.median, least);
}

void DeviceProfile::put_costs(experts::ExpertCosts& costs) const {
  costs.run = compute_time(host);
  costs.device = {};
  costs.device.run = compute_time(run);
  costs.device.transfer = busy.seconds(expert);
  costs.device.gate = compute_time(attention);
  costs.device.sync = sync.median;
  costs.device.predict = predict.median;
  costs.device.row = static_cast<double>(row) / busy.bytes_per_s;
  costs.device.full_duplex = full_duplex;
  costs.device.in_place = in_place;
  if (!in_slices()) return;
  const auto share = [&](Bytes slice) { return static_cast<double>(slice) / static_cast<double>(expert); };
  costs.device.msb = share(view == kMsbView ? expert : expert - lsb);
  costs.device.lsb = share(lsb);
}

std::string_view duplex_name(bool full) { return full ? "full" : "half"; }

bool full_duplex_of(const JsonObject& link) {
  const std::string name = link.string_or("duplex", "full");
  if (name != "full" && name != "half") link.fail("duplex", "full or half");
  return name == "full";
}

Json to_json(const DeviceProfile& profile) {
  Json json = {{"name", profile.device},
               {"view", profile.view},
               {"expert", profile.expert},
               {"row", profile.row},
               {"host", to_json(profile.host)},
               {"run", to_json(profile.run)},
               {"link",
                {{"idle", to_json(profile.idle)},
                 {"busy", to_json(profile.busy)},
                 {"duplex", duplex_name(profile.full_duplex)}}},
               {"attention", to_json(profile.attention)},
               {"predict", to_json(profile.predict)},
               {"sync", to_json(profile.sync)}};
  if (profile.in_slices()) json["lsb"] = profile.lsb;
  if (profile.in_place) json["link"]["in_place"] = true;
  return json;
}

DeviceProfile device_profile_of(const JsonObject& object) {
  const JsonObject link = object.object("link");
  const std::string view = object.string_or("view", "");
  const bool in_slices = view == kMsbView || view == kSlicesView;
  if (!view.empty() && view != kWordsView && view != kPackedView && !in_slices)
    object.fail("view", "words, packed, msb or msb+lsb");
  const std::int64_t expert = object.integer("expert", 1, kMostExpertBytes);
  return {.device = object.string("name"),
          .view = view,
          .expert = static_cast<Bytes>(expert),
          .lsb = in_slices ? static_cast<Bytes>(object.integer("lsb", 1, expert)) : 0,
          .row = static_cast<Bytes>(object.integer("row", 1, kMostExpertBytes)),
          .host = rising_times(object, "host"),
          .run = rising_times(object, "run", Least::kNone),
          .idle = link_speed_of(link.object("idle")),
          .busy = link_speed_of(link.object("busy")),
          .full_duplex = full_duplex_of(link),
          .in_place = link.boolean_or("in_place", false),
          .attention = rising_times(object, "attention"),
          .predict = measured_of(object.object("predict")),
          .sync = measured_of(object.object("sync"))};
}

}  // namespace sluice::engine
