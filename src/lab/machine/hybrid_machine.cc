#include "lab/machine/hybrid_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/setting.h"
#include "base/unknown_name.h"
#include "engine/plan/device_memory_plan.h"
#include "lab/machine/weight_bytes.h"

namespace sluice::lab {
namespace {

constexpr double kMostSeconds = 1e6, kMicro = 1e-6;
constexpr double kWeights = 8650752;  // weights of an expert of DeepSeek-V2-Lite
constexpr double kMixtralWeights = 176160768;

// What stands beside the experts is ours, of DeepSeek-V2-Lite on an RTX 3090: attention, norms and gate read
// 27 MB a layer at 900 GB/s and are launched one by one, the two shared experts read 35 MB; a prediction is a
// gate in three launches, and a stream waits for another's event before and after it; a row has 2048 floats.
HybridMachine machine(const char* name, double bits, double weights, const char* source,
                      const experts::ComputeTime& host, double device, double transfer) {
  HybridMachine machine{.name = name, .expert_bits = bits, .source = source};
  machine.expert_bytes = static_cast<Bytes>(bytes_at(weights, bits));
  machine.costs.run = host;
  machine.costs.device = {.run = {.fixed = device, .per_token = .5 * kMicro},
                          .transfer = transfer,
                          .shared = {.fixed = 39 * kMicro, .per_token = 1 * kMicro},
                          .gate = {.fixed = 60 * kMicro, .per_token = 1 * kMicro},
                          .sync = 10 * kMicro,
                          .policy = 10 * kMicro,
                          .launch = 5 * kMicro,
                          .predict = 15 * kMicro,
                          .stream_switch = 5 * kMicro,
                          .row = .33 * kMicro};
  return machine;
}

// What SMoE's paper says of a machine, or follows from it (SPEC §10, G1).
struct SmoeSetting {
  const char* name = nullptr;
  double weights = 0;    // weights of an expert
  double link = 0;       // bytes/s
  double memory = 0;     // bytes/s of the card's memory, by its data sheet
  double shared = 0;     // shared experts, as multiples of a routed one
  double attention = 0;  // weights of attention of a layer
  double hidden = 0;     // floats of a row
  std::vector<double> slot_shares = {};
  const char* what = nullptr;
};

// An expert takes a token as long as its weights are read: on the device at the rate of the card's memory, on
// the host as given, with nothing shared between tokens (the paper's figure 8 is linear). What stands beside
// the experts is ours, as above, of the model's own widths.
HybridMachine smoe_machine(const SmoeSetting& setting, const std::string& name, double host_per_token,
                           const std::string& host) {
  const double bytes = word_bytes(setting.weights);
  HybridMachine machine{.name = name, .expert_bits = word_bits(), .expert_bytes = static_cast<Bytes>(bytes)};
  machine.slot_shares = setting.slot_shares;
  machine.source = fmt::format("{}; {:.3g} ms a copy, {}", setting.what, 1e3 * bytes / setting.link, host);
  machine.costs.run.per_token = host_per_token;
  experts::DeviceCosts& device = machine.costs.device;
  device.run.fixed = bytes / setting.memory;
  device.transfer = bytes / setting.link;
  device.shared.fixed = setting.shared * bytes / setting.memory;
  device.gate.fixed = 30 * kMicro + word_bytes(setting.attention) / setting.memory;
  device.sync = 10 * kMicro;
  device.policy = 10 * kMicro;
  device.launch = 5 * kMicro;
  device.predict = 15 * kMicro;
  device.stream_switch = 5 * kMicro;
  device.row = setting.hidden * sizeof(float) / setting.link;
  return machine;
}

// With a host that reads this many GB of weights a second.
HybridMachine smoe_end(const SmoeSetting& setting, double gigabytes) {
  const double seconds = word_bytes(setting.weights) / (gigabytes * 1e9);
  return smoe_machine(
      setting, fmt::format("{}-{}", setting.name, gigabytes), seconds,
      fmt::format("{:.3g} ms a token on the host, which reads {} GB/s", 1e3 * seconds, gigabytes));
}

constexpr double kLeastRead = 25, kMostRead = 75;  // GB/s

SmoeSetting smoe_s1() {
  return {.name = "smoe-s1",
          .weights = kWeights,
          .link = 25e9,
          .memory = 912e9,
          .shared = 2,
          .attention = 4.0 * 2048 * 2048,
          .hidden = 2048,
          .slot_shares = {467.0 / 1728},
          .what = "SMoE's S1, deepseek-moe-16b on a 3080 Ti"};
}

SmoeSetting smoe_s2() {
  return {
      .name = "smoe-s2",
      .weights = 13271040,
      .link = 12.5e9,
      .memory = 288e9,
      .shared = 2,
      .attention = 4.0 * 2560 * 2560,
      .hidden = 2560,
      .slot_shares = {413.0 / 1792, 714.0 / 1792},  // with 16 GB, as a table says, and 24, as the text does
      .what = "SMoE's S2, XVERSE-MoE-A4.2B on a 4060 Ti"};
}

// Its one shared expert is as wide as eight routed ones, and four heads of 28 have keys and values.
HybridMachine smoe_s3() {
  const SmoeSetting setting{.name = "smoe-s3",
                            .weights = 27525120,
                            .link = 25e9,
                            .memory = 768e9,
                            .shared = 8,
                            .attention = 2.0 * 3584 * (3584 + 512),
                            .hidden = 3584,
                            .slot_shares = {560.0 / 1792},
                            .what = "SMoE's S3, Qwen2-57B-A14B on an A6000"};
  const double seconds = word_bytes(setting.weights) / setting.link / 3;
  return smoe_machine(setting, setting.name, seconds,
                      fmt::format("a third of it a token on the host ({:.3g} ms)", 1e3 * seconds));
}

bool is_band(const std::string& name) { return name == "smoe-s1" || name == "smoe-s2"; }

std::vector<HybridMachine> make_all() {
  const double share = 4.5 / 16;
  return {
      machine("dali-3090", 16, kWeights,
              "published times: 541 µs a copy, 60 + 90 w µs on the host for w tokens",
              {.fixed = 60 * kMicro, .per_token = 90 * kMicro}, 30 * kMicro, 541 * kMicro),
      machine("dali-3090-4.5", 4.5, kWeights, "as dali-3090, all bytes of weights times 4.5/16",
              {.fixed = 60 * share * kMicro, .per_token = 90 * share * kMicro}, 30 * share * kMicro,
              541 * share * kMicro),
      machine("dali-3090-fit", 16, kWeights, "fitted to DALI's Table 4: 1.0 ms a copy, 300 w µs on the host",
              {.per_token = 300 * kMicro}, 30 * kMicro, 1000 * kMicro),
      machine("dali-3090-mixtral-4", 4.5, kMixtralWeights,
              "fitted to DALI's Table 4 for Mixtral: 4.0 ms a copy, 2 + 5 w ms on the host",
              {.fixed = 2000 * kMicro, .per_token = 5000 * kMicro}, 400 * share * kMicro, 4000 * kMicro),
      machine("dali-3090-mixtral-8", 4.5, kMixtralWeights,
              "fitted to DALI's Table 4 for Mixtral: 8.0 ms a copy, 2 + 0.5 w ms on the host",
              {.fixed = 2000 * kMicro, .per_token = 500 * kMicro}, 400 * share * kMicro, 8000 * kMicro),
      smoe_end(smoe_s1(), kLeastRead),
      smoe_end(smoe_s1(), kMostRead),
      smoe_end(smoe_s2(), kLeastRead),
      smoe_end(smoe_s2(), kMostRead),
      smoe_s3()};
}

// A line, or what was measured: "measured_s": [[tokens, seconds], …].
Json time_json(const experts::ComputeTime& time) {
  if (time.measured.empty()) return {{"fixed_s", time.fixed}, {"per_token_s", time.per_token}};
  Json points = Json::array();
  for (const auto& [tokens, seconds] : time.measured) points.push_back(Json::array({tokens, seconds}));
  return {{"measured_s", std::move(points)}};
}

experts::ComputeTime line_of(const JsonObject& object) {
  return {.fixed = object.real("fixed_s", 0, kMostSeconds),
          .per_token = object.real("per_token_s", 0, kMostSeconds)};
}

}  // namespace

std::span<const HybridMachine> hybrid_machines() {
  static const std::vector<HybridMachine> all = make_all();
  return all;
}

HybridMachine hybrid_machine_from_json(const Json& json, const std::string& path) {
  const JsonObject file(json, path);
  const JsonObject cpu = file.object("cpu"), device = file.object("device"), link = file.object("link");
  HybridMachine machine{.name = file.string("name"),
                        .expert_bits = file.real("expert_bits", 1, 32),
                        .expert_bytes = static_cast<Bytes>(file.real("expert_bytes", 1, 1e12)),
                        .source = path};
  machine.costs.run = line_of(cpu);
  machine.costs.device = {.run = line_of(device),
                          .transfer = link.real("transfer_s", 1e-9, kMostSeconds),
                          .shared = {.fixed = device.real("shared_s", 0, kMostSeconds)},
                          .gate = {.fixed = device.real("gate_s", 0, kMostSeconds)},
                          .sync = device.real("sync_s", 0, kMostSeconds),
                          .policy = device.real("policy_s", 0, kMostSeconds),
                          .launch = device.real("launch_s", 0, kMostSeconds),
                          .predict = device.real("predict_s", 0, kMostSeconds),
                          .stream_switch = device.real("switch_s", 0, kMostSeconds),
                          .row = link.real("row_s", 0, kMostSeconds),
                          .full_duplex = engine::full_duplex_of(link)};
  return machine;
}

Json to_json(const HybridMachine& machine) {
  const experts::DeviceCosts& device = machine.costs.device;
  Json run = time_json(device.run);
  run.update({{"shared_s", device.shared.of(1)},
              {"gate_s", device.gate.of(1)},
              {"launch_s", device.launch},
              {"sync_s", device.sync},
              {"policy_s", device.policy},
              {"predict_s", device.predict},
              {"switch_s", device.stream_switch}});
  return {{"name", machine.name},
          {"expert_bits", machine.expert_bits},
          {"expert_bytes", machine.expert_bytes},
          {"cpu", time_json(machine.costs.run)},
          {"device", std::move(run)},
          {"link",
           {{"transfer_s", device.transfer},
            {"row_s", device.row},
            {"duplex", engine::duplex_name(device.full_duplex)}}}};
}

HybridMachine hybrid_machine_of(const engine::Profile& profile, const std::string& path) {
  const engine::DeviceProfile& device = profile.device.value();
  if (!device.computes_experts())
    throw Error(ErrorKind::kUnsupported, "the profile is of a device that computes no expert of its model")
        .in(path)
        .expected("times of experts on the device")
        .found("none")
        .fix("replay with a profile of another device");
  using experts::Part;
  experts::Parts slices;
  if (device.in_slices())
    slices = device.view == engine::kMsbView ? experts::Parts(Part::kMsb) : Part::kMsb | Part::kLsb;
  return {.name = path,
          .expert_bits = device.in_slices() ? 0
                                            : word_bits() * static_cast<double>(device.expert) /
                                                  static_cast<double>(std::max<Bytes>(profile.model.full, 1)),
          .expert_bytes = device.expert,
          .source = fmt::format("measured: {} beside {}", device.device, profile.machine.cpu),
          .costs = profile.device_costs(),
          .buffers = engine::kLeastStaging,
          .packed = device.view == engine::kPackedView,
          .slices = slices};
}

void divide_into_slices(const experts::ExpertBytes& bytes, HybridMachine& machine) {
  if (!machine.slices.empty()) return;
  const auto both = static_cast<double>(bytes.msb + bytes.lsb);
  machine.costs.device.msb = static_cast<double>(bytes.msb) / both;
  machine.costs.device.lsb = static_cast<double>(bytes.lsb) / both;
}

void limit_link(double bytes_per_s, HybridMachine& machine) {
  experts::DeviceCosts& device = machine.costs.device;
  const double least = static_cast<double>(machine.expert_bytes) / bytes_per_s;
  if (least <= device.transfer) return;
  device.row *= least / device.transfer;
  device.transfer = least;
  machine.source += fmt::format("; the link limited to {:.3g} GB/s", bytes_per_s / 1e9);
}

std::vector<std::string> hybrid_machine_names() {
  std::vector<std::string> names;
  for (const HybridMachine& machine : hybrid_machines()) {
    const std::string band = machine.name.substr(0, machine.name.rfind('-'));
    const std::string& name = is_band(band) ? band : machine.name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::vector<HybridMachine> find_hybrid_band(const std::string& name_or_file) {
  if (!is_band(name_or_file)) return {find_hybrid_machine(name_or_file)};
  std::vector<HybridMachine> band;
  for (const HybridMachine& machine : hybrid_machines())
    if (machine.name.starts_with(name_or_file + "-")) band.push_back(machine);
  return band;
}

bool is_hybrid_machine(const std::string& name_or_file) {
  if (is_band(name_or_file)) return true;
  for (const HybridMachine& machine : hybrid_machines())
    if (machine.name == name_or_file) return true;
  if (!std::filesystem::is_regular_file(name_or_file)) return false;
  const Json json = read_json_file(name_or_file);
  return json.is_object() && (json.contains("link") || json.contains("profile"));
}

HybridMachine find_hybrid_machine(const std::string& name_or_file) {
  for (const HybridMachine& machine : hybrid_machines())
    if (machine.name == name_or_file) return machine;
  if (!std::filesystem::exists(name_or_file)) {
    const std::vector<std::string> known = hybrid_machine_names();
    throw unknown_name(Setting::kMachine, name_or_file, known, "no such machine",
                       "give one of these, or check the name of the file")
        .expected(fmt::format("{}, or a JSON file", fmt::join(known, ", ")));
  }
  const Json json = read_json_file(name_or_file);
  if (!json.is_object() || !json.contains("profile")) return hybrid_machine_from_json(json, name_or_file);
  const engine::Profile profile = engine::profile_from_json(json, name_or_file);
  if (!profile.device)
    throw Error(ErrorKind::kInvalid, "the profile has no costs of a device")
        .in(name_or_file)
        .expected("a profile that was measured with " + flag(Setting::kDevice))
        .found("one of the host alone")
        .fix("measure again: sluice profile MODEL " + flag(Setting::kDevice) + " emulated " +
             flag(Setting::kOutput) + " FILE.json");
  return hybrid_machine_of(profile, name_or_file);
}

}  // namespace sluice::lab
