#include "engine/plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {
namespace {

constexpr int kProfileVersion = 2, kOldest = 1;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

void check_same(const std::string& name, const char* what, const std::string& expected,
                const std::string& found) {
  if (expected == found) return;
  throw Error(ErrorKind::kInvalid, fmt::format("the profile was measured for another {}", what))
      .in(name)
      .expected(expected)
      .found(found)
      .fix("measure again: sluice profile MODEL " + flag(Setting::kOutput) + " FILE.json");
}

}  // namespace

experts::ExpertCosts Profile::costs() const {
  experts::ExpertCosts costs;
  costs.fetch.chunks = model.chunks;
  costs.fetch.workers = machine.threads;
  costs.fetch.u = u.median;
  costs.fetch.v = v.median;
  // Adds the chunk's share of the next work of the same threads: merging, or, if experts are computed with in
  // their stored form, the extra time of those products. (Experts outside state C are merged even then; their
  // reads take longer than that.)
  costs.fetch.c = c.median;
  if (p_packed) {
    const double chunks = static_cast<double>(model.tensors) * model.chunks;
    if (chunks > 0) costs.fetch.c += std::max(0.0, p_packed->median - p.median) * machine.threads / chunks;
  } else if (model.chunks > 0) {
    costs.fetch.c += merge.median / model.chunks;
  }
  costs.fetch.step = experts::kSecondsPerTriedDecode;
  costs.run.fixed = p.median;
  if (!p_of_tokens.empty()) {
    const auto& [tokens, most] = p_of_tokens.back();
    costs.run.per_token = std::max(0.0, (most.median - p.median) / std::max(1.0, tokens - 1.0));
    costs.run.fixed = std::max(0.0, p.median - costs.run.per_token);
  }
  return costs;
}

experts::ExpertCosts Profile::device_costs() const {
  experts::ExpertCosts all = costs();
  if (device) device->put_costs(all);
  return all;
}

ProfiledModel profiled_model(const store::Checkpoint& checkpoint, const model::Model& model,
                             const fetch::ExpertStore& experts) {
  ProfiledModel profiled;
  profiled.architecture = model.config.model_type;
  profiled.codec = checkpoint.codec();
  profiled.layers = model.config.sparse_layers();
  profiled.experts = model.config.moe.experts;
  profiled.top_k = model.config.moe.top_k;
  if (model.experts.empty()) return profiled;
  const fetch::ExpertLayout& layout = experts.layout({0, 0});
  profiled.tensors = static_cast<std::uint32_t>(layout.pieces.size());
  profiled.chunks = static_cast<std::uint32_t>(layout.pieces[0].chunks.size());
  for (const model::ExpertPieces& pieces : model.experts) {
    const experts::ExpertBytes bytes = experts.sizes().bytes(
        {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)});
    profiled.full = std::max(profiled.full, bytes.full);
    profiled.sm = std::max(profiled.sm, bytes.sm);
    profiled.exp = std::max(profiled.exp, bytes.exp);
  }
  return profiled;
}

Json to_json(const Profile& profile) {
  Json json;
  json["profile"] = kProfileVersion;
  json["model"] = {{"architecture", profile.model.architecture},
                   {"codec", profile.model.codec},
                   {"layers", profile.model.layers},
                   {"experts", profile.model.experts},
                   {"top_k", profile.model.top_k},
                   {"tensors", profile.model.tensors},
                   {"chunks", profile.model.chunks},
                   {"full", profile.model.full},
                   {"sm", profile.model.sm},
                   {"exp", profile.model.exp}};
  json["machine"] = {{"cpu", profile.machine.cpu},
                     {"isa", profile.machine.isa},
                     {"io", profile.machine.io},
                     {"threads", profile.machine.threads}};
  json["u"] = to_json(profile.u);
  json["v"] = to_json(profile.v);
  json["c"] = to_json(profile.c);
  json["p"] = to_json(profile.p);
  if (profile.p_packed) json["p_packed"] = to_json(*profile.p_packed);
  json["merge"] = to_json(profile.merge);
  json["latency"] = to_json(profile.latency);
  json["rest"] = to_json(profile.rest);
  json["p_of_tokens"] = to_json(profile.p_of_tokens);
  if (profile.device) json["device"] = to_json(*profile.device);
  if (!profile.ranks.empty()) json["ranks"] = profile.ranks;
  if (!profile.played.empty()) json["played"] = profile.played;
  return json;
}

namespace {

constexpr std::int64_t kMostCount = 1 << 20;

std::string how_to_measure() {
  return "measure: sluice profile MODEL " + flag(Setting::kOutput) + " FILE.json";
}

void check_version(const JsonObject& object, const std::string& name) {
  if (!object.has("profile"))
    throw Error(ErrorKind::kInvalid, "not a profile")
        .in(name)
        .expected("what sluice profile writes")
        .found("an object without \"profile\"")
        .fix(how_to_measure());
  const std::int64_t version = object.integer("profile", 0, kMostCount);
  if (version < kOldest || version > kProfileVersion)
    throw Error(ErrorKind::kUnsupported, "a profile of another version")
        .in(name)
        .expected(fmt::format("{} or {}", kOldest, kProfileVersion))
        .found(std::to_string(version))
        .fix("measure again: sluice profile MODEL " + flag(Setting::kOutput) + " FILE.json");
}

ProfiledModel model_of(const JsonObject& model) {
  const auto count = [&](const char* key) {
    return static_cast<std::uint32_t>(model.integer(key, 0, kMostCount));
  };
  return {model.string("architecture"),
          model.string("codec"),
          count("layers"),
          count("experts"),
          count("top_k"),
          count("tensors"),
          count("chunks"),
          static_cast<Bytes>(model.integer("full", 0, kMostBytes)),
          static_cast<Bytes>(model.integer("sm", 0, kMostBytes)),
          static_cast<Bytes>(model.integer("exp", 0, kMostBytes))};
}

std::vector<double> ranks_of(const JsonObject& object, std::uint32_t experts) {
  std::vector<double> numbers;
  const Json* const ranks = object.find("ranks");
  if (ranks == nullptr) return numbers;
  if (!ranks->is_array() || ranks->size() != experts)
    object.fail("ranks", "one number for every expert of a layer");
  for (const Json& f : *ranks) {
    if (!f.is_number() || !(f.get<double>() >= 0 && f.get<double>() <= 1) ||
        (!numbers.empty() && f.get<double>() > numbers.back()))
      object.fail("ranks", "numbers from 0 to 1, descending");
    numbers.push_back(f.get<double>());
  }
  return numbers;
}

}  // namespace

Profile profile_from_json(const Json& json, const std::string& name) {
  const JsonObject object(json, name);
  check_version(object, name);
  Profile profile;
  const JsonObject model = object.object("model"), machine = object.object("machine");
  profile.model = model_of(model);
  profile.machine = {machine.string("cpu"), machine.string("isa"), machine.string("io"),
                     static_cast<std::uint32_t>(machine.integer("threads", 1, kMostCount))};
  profile.u = measured_of(object.object("u"));
  profile.v = measured_of(object.object("v"));
  profile.c = measured_of(object.object("c"));
  profile.p = measured_of(object.object("p"));
  if (object.find("p_packed") != nullptr) profile.p_packed = measured_of(object.object("p_packed"));
  profile.merge = measured_of(object.object("merge"));
  if (object.find("latency") != nullptr) profile.latency = measured_of(object.object("latency"));
  profile.rest = measured_of(object.object("rest"));
  profile.p_of_tokens = times_of_tokens(object, "p_of_tokens");
  if (object.find("device") != nullptr) profile.device = device_profile_of(object.object("device"));
  profile.ranks = ranks_of(object, profile.model.experts);
  profile.played = shown_text(object.string_or("played", ""));
  return profile;
}

Profile read_profile(const std::string& path) {
  try {
    return profile_from_json(read_json_file(path), path);
  } catch (Error& error) {
    if (error.kind() != ErrorKind::kInvalid || !error.offset()) throw;
    throw error.fix(how_to_measure());  // its text is no JSON
  }
}

bool fits(const Profile& profile, const ProfiledModel& model, const ProfiledMachine& machine) {
  return profile.model == model && profile.machine == machine;
}

void check_profile(const Profile& profile, const ProfiledModel& model, const ProfiledMachine& machine,
                   const std::string& name) {
  const auto text = [](const ProfiledModel& m) {
    return fmt::format("{} {}x{} experts top {}, {} of {} tensors in {} chunks, {}/{}/{} bytes",
                       m.architecture, m.layers, m.experts, m.top_k, m.codec, m.tensors, m.chunks, m.full,
                       m.sm, m.exp);
  };
  check_same(name, "model or store", text(model), text(profile.model));
  check_same(name, "machine", fmt::format("{} ({})", machine.cpu, machine.isa),
             fmt::format("{} ({})", profile.machine.cpu, profile.machine.isa));
  check_same(name, "number of threads", std::to_string(machine.threads),
             std::to_string(profile.machine.threads));
  check_same(name, "way of reading", machine.io, profile.machine.io);
}

}  // namespace sluice::engine
