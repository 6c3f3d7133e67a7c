#include "reproduce/dali/dali_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "experts/placement/placement.h"
#include "experts/registry.h"
#include "experts/schedule/hybrid_timeline.h"
#include "reproduce/svg.h"

namespace sluice::reproduce {
namespace {

// Three bars for each machine; the first has its name, because there is no room for more.
void ladder(const DaliResults& results, Report& report) {
  std::vector<PlotBar> bars;
  const DaliTable& table = results.ladder;
  const std::string model = table.models().front();
  for (const std::string& machine : table.machines(model))
    for (const char* step : {"greedy", "+ prefetch", "+ cache"}) {
      const DaliRatio ratio =
          ratio_of(table, model, machine, "d-naive", step, table.slots(model).front(), &DaliCell::tpot_s);
      bars.push_back(
          {step == std::string_view("greedy") ? machine : step, ratio.mean, ratio.least, ratio.most});
    }
  report.pictures.push_back(
      {"dali-ladder.svg", "Decode speed-up over all experts on the host, part by part: " + model,
       bar_chart({"The parts of DALI: " + model, "machine: greedy; + prefetch; + cache",
                  "times as fast as all on the host",
                  "a quarter of the experts on the device, B = 16; paper: 4.1, 4.47, 6.17"},
                 bars)});
}

// One layer as the clock of a replay sees it, its experts divided by greedy, every second one on the device.
struct Lane {
  experts::HybridTimes times;
  std::vector<PlotSpan> spans;
};
// Attention is the device's, too: it has a row of its own because copies go on beside it.
enum LaneRow : std::size_t { kDevice, kAttention, kHost, kSync, kLink };
const std::vector<std::string> kLaneRows = {"device", "attention", "host", "sync", "link"};
enum LaneKind : std::size_t { kCompute, kCopy, kAhead, kGate, kPredict, kPolicy, kWait, kLaunch };
const std::vector<std::string> kLaneKinds = {"compute",
                                             "copy",
                                             "prefetch",
                                             "attention, norms, gate",
                                             "predict",
                                             "policy",
                                             "wait for the device",
                                             "launch, change of streams"};

Lane lane_of(const experts::ExpertCosts& costs, const std::vector<std::uint32_t>& tokens) {
  std::vector<experts::ExpertId> ids;
  std::vector<double> host, device, transfer;
  std::vector<std::uint8_t> there;
  for (std::uint16_t e = 0; e < tokens.size(); ++e) {
    ids.push_back({0, e});
    host.push_back(costs.run.of(tokens[e]));
    device.push_back(costs.device.run.of(tokens[e]));
    there.push_back(e % 2 == 0 ? 1 : 0);
    transfer.push_back(e % 2 == 0 ? 0 : costs.device.transfer);
  }
  experts::Assignment assignment;
  experts::find_placement("greedy").make()->assign(
      {ids, tokens}, {.t_host = host, .t_device = device, .transfer = transfer, .on_device = there},
      assignment);
  std::vector<double> on_host, resident;
  std::vector<experts::LinkLoad> loads;
  double rows = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (assignment.unit[i] == experts::Unit::kHost) {
      on_host.push_back(host[i]);
      rows += costs.device.row * tokens[i];
    } else if (there[i] != 0) {
      resident.push_back(device[i]);
    } else {
      loads.push_back({ids[i], transfer[i], device[i]});
    }
  }
  const std::vector<experts::LinkTransfer> prefetches = {{{1, 0}, costs.device.transfer},
                                                         {{1, 1}, costs.device.transfer}};
  experts::HybridTimeline clock;
  clock.decide({.sync = costs.device.sync,
                .policy = costs.device.policy,
                .launch = costs.device.launch,
                .predict = costs.device.predict + 2 * costs.device.stream_switch,
                .next_gate = costs.device.gate.of(16)});
  const experts::HybridTimes times = clock.run({.shared = costs.device.shared.of(16),
                                                .host = on_host,
                                                .rows = rows,
                                                .resident = resident,
                                                .loads = loads,
                                                .prefetches = prefetches});
  Lane lane{times, {}};
  const auto add = [&](LaneRow row, LaneKind kind, double begin, double end, const std::string& label) {
    if (end > begin) lane.spans.push_back({row, kind, begin * 1e3, end * 1e3, label});
  };
  const auto launch = [&](double begin, const std::string& label) {
    add(kDevice, kLaunch, begin, begin + costs.device.launch, label);
    return begin + costs.device.launch;
  };
  const double change = costs.device.stream_switch;
  add(kSync, kWait, times.gate, times.gate + costs.device.sync, "scores down");
  add(kHost, kPolicy, times.gate + costs.device.sync, times.decided, "decide");
  add(kDevice, kCompute, launch(times.decided, "shared, resident"), times.resident, "shared, resident");
  add(kDevice, kLaunch, times.resident, times.resident + change, "to the prediction");
  add(kDevice, kPredict, times.resident + change, times.predicted - change, "predict");
  add(kDevice, kLaunch, times.predicted - change, times.predicted, "and back");
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const std::string name = fmt::format("expert {}", loads[i].id.index);
    add(kLink, kCopy, clock.load_arrivals()[i] - loads[i].transfer, clock.load_arrivals()[i], name);
    add(kDevice, kCompute, launch(clock.load_ends()[i] - loads[i].compute - costs.device.launch, name),
        clock.load_ends()[i], name);
  }
  const double begun = times.host - std::accumulate(on_host.begin(), on_host.end(), 0.0);
  add(kSync, kWait, times.decided, begun, "inputs down");
  add(kHost, kCompute, begun, times.host, fmt::format("{} experts", on_host.size()));
  add(kLink, kCopy, times.rows - rows, times.rows, "rows");
  add(kSync, kWait, times.predicted, times.predicted + costs.device.sync, "prediction down");
  for (const experts::LinkArrival& one : clock.arrivals())
    add(kLink, kAhead, std::max(one.time - costs.device.transfer, times.predicted + costs.device.sync),
        one.time, "prefetch");
  add(kAttention, kGate, times.combined, times.end, "next layer's");
  return lane;
}

void lanes(Report& report) {
  const DaliMachine machine = machines_of(dali_deepseek()).front();
  // Six experts for each of 16 tokens: a few are busy, many have one token.
  const std::vector<std::uint32_t> tokens = {13, 12, 8, 7, 6, 5, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2,
                                             2,  2,  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const Lane lane = lane_of(machine.machine.costs, tokens);
  report.pictures.push_back(
      {"dali-lanes.svg",
       "One layer of one decode step on the modelled clock: 96 choices over 32 experts, every second one "
       "resident, "
       "divided by greedy; DeepSeek-V2-Lite at 16 bits",
       gantt_chart({"One layer, host and device side by side", "ms from the layer's gate", "",
                    "prefetches wait until the prediction is known, and go on behind the layer"},
                   kLaneRows, kLaneKinds, lane.spans)});
  const auto& times = lane.times;
  report.data["lanes"] = {{"decided_s", times.decided}, {"resident_s", times.resident},
                          {"device_s", times.device},   {"host_s", times.host},
                          {"rows_s", times.rows},       {"end_s", times.end}};
}

void cosines(const DaliTrained& trained, Report& report) {
  std::vector<PlotSeries> series(2);
  series[0].name = "input as it is";
  series[1].name = "with the residual";
  for (std::size_t l = 0; l < trained.cosine_raw.size(); ++l) {
    const auto x = static_cast<double>(l);
    series[0].points.push_back({x, trained.cosine_raw[l], trained.cosine_raw[l], trained.cosine_raw[l]});
    series[1].points.push_back(
        {x, trained.cosine_residual[l], trained.cosine_residual[l], trained.cosine_residual[l]});
  }
  report.pictures.push_back(
      {"dali-cosines.svg",
       "How near a layer's gate input is to the next layer's, without and with the residual",
       line_chart({"Cosine with the next layer's gate input", "sparse layer", "cosine",
                   trained.model + ", text that did not calibrate"},
                  series)});
}

void hits(const std::vector<double>& hits, Report& report) {
  PlotSeries series{"D-hit", {}};
  for (std::size_t i = 0; i < hits.size(); ++i)
    series.points.push_back({8.0 * static_cast<double>(i + 1), 100 * hits[i], 100 * hits[i], 100 * hits[i]});
  report.pictures.push_back(
      {"dali-hits.svg",
       "Hits of the device's cache while a batch is decoded: Mixtral's shape, 4 of 8 experts, B = 4",
       line_chart({"D-hit over a sequence", "decode step", "% of the device's experts that were resident",
                   "groups of 8 steps; window of 8 steps, 1 swap; synthetic routing"},
                  {series})});
}

}  // namespace

void add_dali_pictures(const DaliResults& results, Report& report) {
  ladder(results, report);
  lanes(report);
  if (results.trained) cosines(*results.trained, report);
  hits(results.hits_over_time, report);
}

}  // namespace sluice::reproduce
