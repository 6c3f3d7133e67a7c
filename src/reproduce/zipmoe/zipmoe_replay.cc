#include "reproduce/zipmoe/zipmoe_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/setting.h"
#include "reproduce/paper_replay.h"
#include "reproduce/zipmoe/zipmoe_systems.h"
#include "trace/routing_trace.h"

namespace sluice::reproduce {
namespace {

constexpr const char* kBaselines[] = {"z-accelerate", "z-deepspeed", "z-moe-infinity"};
constexpr double kBudgets[] = {10e9, 20e9};    // SPEC §6.1, "Settings"
constexpr double kServer = 32e9, kEdge = 2e9;  // bytes a second: PCIe, and the motivation's SSD
// The most tokens of a trace. Orders of large batches are searched anew in every layer, some milliseconds
// each: the 8,000 tokens of a whole published file were not done after ten minutes.
constexpr std::size_t kMostTraceTokens = 96;
constexpr std::size_t kPromptTokens = 32, kOutputTokens = 32;  // for the encoder-decoder

// One kind of model, and the source of its batches.
struct Half {
  const PaperModel& model;
  TokenRouting routing;
  std::function<std::vector<Conversation>(std::size_t)> before, batch;  // for this many sequences
  std::size_t longest_output = 0;
};

std::string stall_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string from_to(const std::vector<double>& values, double factor, const char* unit) {
  const auto [low, high] = std::ranges::minmax(values);
  return fmt::format("{:.2f} to {:.2f}{}", low * factor, high * factor, unit);
}

struct HalfRows {
  std::string f1 = "n/a", f7 = "n/a", f8 = "n/a", f9 = "n/a", f10 = "n/a";
};

class HalfReplay {
 public:
  HalfReplay(const Half& half, const engine::Profile& measured, const ZipmoeReplaySettings& settings)
      : half_(half), settings_(settings), replay_(half.model, half.routing, measured) {}

  HalfRows rows() {
    HalfRows rows;
    rows.f1 = stall();
    rows.f7 = reductions();
    rows.f8 = gains();
    rows.f9 = lengths();
    rows.f10 = ladder();
    return rows;
  }
  const Json& data() const { return data_; }

 private:
  ReplayFigures run(const char* row, const std::string& preset, double memory, std::size_t batch = 1,
                    std::size_t output = SIZE_MAX, double disk = PaperMachine().disk_bytes_per_s) {
    if (settings_.on_stage) settings_.on_stage(fmt::format("replay of {}: {}", half_.model.name, row));
    ReplayRequest request{.preset = preset,
                          .memory = memory,
                          .before = half_.before(batch),
                          .batch = half_.batch(batch),
                          .output = output,
                          .machine = {.disk_bytes_per_s = disk}};
    const ReplayFigures figures = replay_.run(request, settings_.stop);
    data_.push_back({{"row", row},
                     {"preset", preset},
                     {"memory", memory},
                     {"disk_bytes_per_s", disk},
                     {"batch", batch},
                     {"output", std::min(output, half_.longest_output)},
                     {"ttft_s", figures.ttft_s},
                     {"tpot_s", figures.tpot_s},
                     {"tok_s", figures.tok_s},
                     {"e2e_s", figures.e2e_s},
                     {"stall_share", figures.stall_share}});
    return figures;
  }

  std::string stall() {
    const auto share = [&](double disk) {
      return stall_text(run("Z-F1", "z-accelerate", kBudgets[0], 1, SIZE_MAX, disk).stall_share);
    };
    return share(kServer) + " to " + share(kEdge);
  }

  std::string reductions() {
    std::vector<double> tpot, ttft;
    for (const double budget : kBudgets) {
      const ReplayFigures planned = run("Z-F7", kPlanned, budget);
      for (const char* baseline : kBaselines) {
        const ReplayFigures other = run("Z-F7", baseline, budget);
        tpot.push_back(1 - planned.tpot_s / other.tpot_s);
        ttft.push_back(1 - planned.ttft_s / other.ttft_s);
      }
    }
    return from_to(tpot, 100, " %") + " / " + from_to(ttft, 100, " %");
  }

  std::string gains() {
    std::string text;
    for (const std::size_t batch : settings_.batches) {
      const double planned = run("Z-F8", kPlanned, kBudgets[1], batch).tok_s;
      std::vector<double> values;
      for (const char* baseline : kBaselines)
        values.push_back(planned / run("Z-F8", baseline, kBudgets[1], batch).tok_s);
      text += fmt::format("{}B={}: {}", text.empty() ? "" : ", ", batch, from_to(values, 1, "×"));
    }
    return text;
  }

  std::string lengths() {
    std::string text;
    for (const std::size_t parts : {4, 2, 1}) {
      const std::size_t output = std::max<std::size_t>(1, half_.longest_output / parts);
      const double planned = run("Z-F9", kPlanned, kBudgets[1], 1, output).e2e_s;
      std::vector<double> values;
      for (const char* baseline : kBaselines)
        values.push_back(run("Z-F9", baseline, kBudgets[1], 1, output).e2e_s / planned);
      text += fmt::format("{}{} tokens: {}", text.empty() ? "" : ", ", output, from_to(values, 1, "×"));
    }
    return text;
  }

  std::string ladder() {
    const auto step = [](double tok_s, double e2e_s) { return fmt::format("{:.2f} ({:.2f})", tok_s, e2e_s); };
    const auto one = [&](const char* preset) {
      const ReplayFigures figures = run("Z-F10", preset, kBudgets[1]);
      return step(figures.tok_s, figures.e2e_s);
    };
    double tok_s = 0, e2e_s = 0;
    for (const char* preset : {"z-basic-fifo", "z-basic-marking", "z-basic-lru"}) {
      const ReplayFigures figures = run("Z-F10", preset, kBudgets[1]);
      tok_s += figures.tok_s / 3;
      e2e_s += figures.e2e_s / 3;
    }
    return one("z-accelerate") + ", " + step(tok_s, e2e_s) + ", " + one("z-C") + ", " + one(kPlanned);
  }

  const Half& half_;
  const ZipmoeReplaySettings& settings_;
  PaperReplay replay_;
  Json data_ = Json::array();
};

void check_shape(const trace::RoutingTrace& trace) {
  const PaperModel& model = deepseek_v2_lite();
  const trace::TraceHeader& header = trace.header();
  const auto shape = [](std::uint32_t layers, std::uint32_t experts, std::uint32_t k) {
    return fmt::format("{} sparse layers of {} experts, top {}", layers, experts, k);
  };
  const std::string expected = shape(model.layers, model.experts, model.top_k),
                    found = shape(header.layers, header.experts, header.top_k);
  if (expected == found) return;
  throw Error(ErrorKind::kInvalid, "the trace is of another model")
      .in(trace.path())
      .expected(expected + ", as " + model.name)
      .found(found);
}

Half decoder_only(trace::RoutingTrace& trace, const std::function<bool()>& stop) {
  const PaperModel& model = deepseek_v2_lite();
  check_shape(trace);
  Half half{model, read_token_routing(trace, stop), {}, {}};
  const std::size_t tokens = std::min(half.routing.tokens(), kMostTraceTokens), middle = tokens / 2;
  if (middle < 4)
    throw Error(ErrorKind::kInvalid, "the trace is too short to be replayed")
        .in(trace.path())
        .expected("at least 8 tokens")
        .found(std::to_string(tokens));
  half.before = [=](std::size_t count) { return conversations(0, middle, count); };
  half.batch = [=](std::size_t count) { return conversations(middle, tokens, count); };
  half.longest_output = half.batch(1).front().output.size();
  return half;
}

Half encoder_decoder(std::size_t most_sequences, std::string& conditions) {
  const PaperModel& model = switch_large_128();
  lab::SyntheticRouting settings{.layers = model.layers,
                                 .experts = model.experts,
                                 .top_k = model.top_k,
                                 .prompts = 2 * most_sequences,
                                 .tokens = kPromptTokens + kOutputTokens};
  lab::RoutingFacts facts;
  Half half{model, synthetic_routing(settings, facts), {}, {}};
  conditions += fmt::format(
      "\nEncoder-decoder: synthetic routing (SPEC §6) of {}, k = 1, N = 128; a {}, d {}, φ {}, σ {}, by "
      "which f_1 {:.2f}, "
      "top-1 mass {:.2f}, overlap {:.2f}; {} tokens in, {} out. As many sequences before fill caches.\n",
      model.name, settings.a, settings.d, settings.phi, settings.sigma, facts.f_1, facts.mass, facts.overlap,
      kPromptTokens, kOutputTokens);
  const auto take = [](std::size_t first, std::size_t count) {
    std::vector<Conversation> list(count);
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t i = 0; i < kPromptTokens + kOutputTokens; ++i)
        (i < kPromptTokens ? list[c].prompt : list[c].output)
            .push_back((first + c) * (kPromptTokens + kOutputTokens) + i);
    return list;
  };
  half.before = [=](std::size_t count) { return take(0, count); };
  half.batch = [=](std::size_t count) { return take(most_sequences, count); };
  half.longest_output = kOutputTokens;
  return half;
}

}  // namespace

void check_zipmoe_trace(const std::string& path) { check_shape(*trace::open_trace(path)); }

ZipmoeReplay replay_zipmoe(const ZipmoeReplaySettings& settings, const engine::Profile& measured) {
  SLUICE_CHECK(!settings.batches.empty());
  const PaperMachine machine;
  ZipmoeReplay replay;
  replay.conditions = fmt::format(
      "Time is virtual. The disk reads {} GB/s; K = {}, L = {}, ρ = {}; {} and {} GB for experts (batches, "
      "lengths and "
      "the ablation: the larger; waiting: the smaller, at {} and {} GB/s). Pools are planned from assumed "
      "frequencies. Decoding and computing take what they take on this machine, scaled by weights, so there "
      "is no "
      "accelerator. Prefetching of z-moe-infinity is not timed.\n",
      machine.disk_bytes_per_s * 1e-9, machine.chunks, machine.workers, machine.rho, kBudgets[0] * 1e-9,
      kBudgets[1] * 1e-9, kServer * 1e-9, kEdge * 1e-9);
  HalfRows first, second;
  if (settings.trace.empty()) {
    replay.missing = "decoder-only n/a: no recorded routing of DeepSeek-V2-Lite is at hand, give " +
                     flag(Setting::kTrace) + " FILE";
  } else {
    const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(settings.trace);
    const Half half = decoder_only(*trace, settings.stop);
    replay.played = trace->played();
    replay.conditions += fmt::format(
        "\nDecoder-only: recorded routing of {}, the first {} tokens. The first half fills caches and is not "
        "timed; a "
        "third of "
        "the rest is the prompt. Sequences of a batch begin at different places of it and go round.\n",
        half.model.name, std::min(half.routing.tokens(), kMostTraceTokens));
    HalfReplay rows(half, measured, settings);
    first = rows.rows();
    replay.data["decoder_only"] = rows.data();
  }
  const Half half = encoder_decoder(std::ranges::max(settings.batches), replay.conditions);
  HalfReplay rows(half, measured, settings);
  second = rows.rows();
  replay.data["encoder_decoder"] = rows.data();
  replay.f1 = first.f1 + "; " + second.f1;
  replay.f7 = first.f7 + "; " + second.f7;
  replay.f8 = first.f8 + "; " + second.f8;
  replay.f9 = first.f9 + "; " + second.f9;
  replay.f10 = first.f10;
  return replay;
}

}  // namespace sluice::reproduce
