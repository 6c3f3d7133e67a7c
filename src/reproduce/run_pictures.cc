#include "reproduce/run_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <string_view>

#include "experts/core/state_order.h"
#include "experts/layer_decider.h"
#include "reproduce/svg.h"

namespace sluice::reproduce {

using Entry = fetch::TimelineEntry;

void StateCounter::on_decisions(std::uint32_t sparse_layer, const experts::LayerDecision& decision) {
  if (!decoding_) return;
  for (const auto* used : {&decision.outcome->hits, &decision.outcome->misses})
    for (const experts::Admission& one : *used) {
      const std::size_t state = experts::place_of(experts::state_of(one.before));
      counts_[sparse_layer][one.id.index][state] += 1;
    }
}

std::vector<std::vector<double>> StateCounter::by_rank() const {
  const std::size_t experts = counts_.empty() ? 0 : counts_.front().size();
  std::vector<std::vector<double>> values(5, std::vector<double>(experts));
  for (const auto& layer : counts_) {
    const auto total = [&](std::size_t e) {
      return std::accumulate(layer[e].begin(), layer[e].end(), std::uint64_t{0});
    };
    std::vector<std::size_t> order(experts);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, total);
    for (std::size_t rank = 0; rank < experts; ++rank)
      for (std::size_t state = 0; state < 5; ++state)
        values[state][rank] += static_cast<double>(layer[order[rank]][state]);
  }
  return values;
}

std::string states_picture(const std::string& preset, const StateCounter& counter) {
  return stacked_chart({"In which state experts were found: " + preset,
                        "rank of the expert in its layer (0: used most)", "accesses while decoding", ""},
                       {"F full", "C compressed", "S sign+mantissa", "E exponents", "M on disk"},
                       counter.by_rank());
}

std::string layer_gantt(const std::string& title, const fetch::Timeline& timeline) {
  const std::span<const Entry> all = timeline.entries();
  std::span<const Entry> best;
  std::size_t best_score = 0;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin;
    std::size_t score = 0;
    for (; end < all.size() && all[end].expert.layer == all[begin].expert.layer; ++end)
      score += all[end].kind == Entry::Kind::kRead ? 100 : all[end].kind == Entry::Kind::kCompute ? 10 : 1;
    if (score > best_score) {
      best = all.subspan(begin, end - begin);
      best_score = score;
    }
    begin = end;
  }
  const std::vector<std::string> kinds = {"read", "check", "decode", "merge", "compute"};
  if (best.empty()) return gantt_chart({title, "ms", "", "nothing was recorded"}, {"disk"}, kinds, {});
  const auto start = std::ranges::min(best, {}, &Entry::begin).begin;
  const auto ms = [&](auto time) { return std::chrono::duration<double, std::milli>(time - start).count(); };

  // Reads overlap: each goes to the first free lane.
  std::vector<Entry> sorted(best.begin(), best.end());
  std::ranges::stable_sort(sorted, {}, &Entry::begin);
  std::vector<std::chrono::steady_clock::time_point> lanes;
  std::vector<PlotSpan> spans;
  std::uint32_t threads = 0;
  Bytes bytes = 0;
  for (const Entry& entry : sorted) {
    if (entry.kind != Entry::Kind::kRead) {
      threads = std::max(threads, entry.thread + 1);
      continue;
    }
    std::size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > entry.begin) ++lane;
    if (lane == lanes.size()) lanes.push_back(entry.end);
    lanes[lane] = entry.end;
    bytes += entry.bytes;
    spans.push_back({lane, 0, ms(entry.begin), ms(entry.end), fmt::format("e{}", entry.expert.index)});
  }
  for (const Entry& entry : sorted)
    if (entry.kind != Entry::Kind::kRead)
      spans.push_back({lanes.size() + entry.thread, static_cast<std::size_t>(entry.kind), ms(entry.begin),
                       ms(entry.end), fmt::format("e{}", entry.expert.index)});
  std::vector<std::string> rows;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) rows.push_back(fmt::format("read {}", lane + 1));
  for (std::uint32_t thread = 0; thread < threads; ++thread) rows.push_back(fmt::format("thread {}", thread));
  return gantt_chart({title, "ms", "",
                      fmt::format("layer {}; {} read; a read's bar is from submission to completion",
                                  best.front().expert.layer, format_bytes(bytes))},
                     rows, kinds, spans);
}

}  // namespace sluice::reproduce
