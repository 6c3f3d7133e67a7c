#include "lab/reproduce/zipmoe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/cpu.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "experts/registry.h"
#include "lab/reproduce/exponents.h"
#include "lab/reproduce/makespan_ratio.h"
#include "lab/reproduce/run_pictures.h"
#include "lab/reproduce/svg.h"

namespace sluice::lab {
namespace {

constexpr const char* kPlanned = "z-C+P";
constexpr const char* kPrompts[] = {"Once upon a time there was a fisherman who lived by the sea.",
                                    "The old woman looked at the door and said nothing.",
                                    "In the middle of the night the king rose from his bed.",
                                    "A fox went out in search of food, and met a lion.",
                                    "When the ship came near the shore, the sailors cried out.",
                                    "She had three sons, and the youngest was the wisest.",
                                    "The road through the forest was long and very dark.",
                                    "He put his hand into his pocket and drew out a letter.",
                                    "It was the best house in the village, with a red roof.",
                                    "The two brothers had not spoken for seven years.",
                                    "A wolf saw a lamb drinking at a brook.",
                                    "My father told me this story when I was a child.",
                                    "The captain ordered the men to take in the sails.",
                                    "There was once a poor miller who had a daughter.",
                                    "The horse stopped at the bridge and would not go on.",
                                    "On the first day of spring the snow began to melt."};

// Those of these names that this program has.
std::vector<std::string> known(std::initializer_list<const char*> names) {
  std::vector<std::string> list;
  for (const char* name : names)
    if (std::ranges::any_of(experts::presets(),
                            [&](const experts::Preset& preset) { return preset.name == name; }))
      list.emplace_back(name);
  return list;
}
std::vector<std::string> published_baselines() {
  return known({"z-accelerate", "z-deepspeed", "z-moe-infinity"});
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string range(std::vector<double> values, double factor, const char* unit) {
  const Spread spread = spread_of(std::move(values));
  return fmt::format("{:.2f} to {:.2f}{}", spread.low * factor, spread.high * factor, unit);
}

class Reproducer {
 public:
  explicit Reproducer(const ZipmoeSettings& settings)
      : settings_(settings),
        tokens_(settings.tokens != 0 ? settings.tokens
                : settings.quick     ? 16
                                     : 48),
        runs_(settings.runs != 0 ? settings.runs
              : settings.quick   ? 2
                                 : 5),
        batches_(settings.quick ? std::vector<std::size_t>{1, 4} : std::vector<std::size_t>{1, 4, 16}),
        lengths_(settings.quick ? std::vector<std::size_t>{tokens_ / 2, tokens_ * 2}
                                : std::vector<std::size_t>{tokens_ / 3, tokens_, tokens_ * 3}) {
    std::size_t longest = 0;
    for (std::size_t b = 0; b < batches_.back(); ++b) longest = std::max(longest, prompt(b).size());
    options_ = settings.options;
    options_.positions =
        std::min<std::size_t>(longest + lengths_.back() + 1, settings.packed.model->config.max_positions);
    report_.title = "ZipMoE (arXiv 2601.21198), tried again";
    report_.command = settings.command;
    report_.prepare = settings.prepare;
    report_.machine =
        fmt::format("{}, {} threads, {} of memory; reads: {}", cpu_info().model,
                    options_.threads != 0 ? options_.threads : usable_cpus(),
                    format_bytes(read_memory_limits().machine_total), fetch::io_mode_name(options_.fetch.io));
  }

  Report run() {
    arithmetic();
    budgets();
    ladder();
    batches();
    lengths();
    pictures_of_runs();
    rows();
    return std::move(report_);
  }

 private:
  void stage(const std::string& text) const {
    if (settings_.on_stage) settings_.on_stage(text);
    check_interrupted();
  }
  void check_interrupted() const {
    if (settings_.interrupted && settings_.interrupted()) throw Error(ErrorKind::kInterrupted, "interrupted");
  }

  std::vector<model::TokenId> prompt(std::size_t index) const {
    if (settings_.tokenizer != nullptr)
      return settings_.tokenizer->encode(kPrompts[index % std::size(kPrompts)], model::AddSpecial::kYes);
    std::vector<model::TokenId> ids;
    for (std::size_t i = 0; i < 16; ++i)
      ids.push_back(static_cast<model::TokenId>((7919 * (i + 1) + 104729 * index) %
                                                settings_.packed.model->config.vocab));
    return ids;
  }

  std::vector<engine::GenerateRequest> requests(std::size_t batch, std::size_t tokens) const {
    std::vector<engine::GenerateRequest> list(batch);
    for (std::size_t b = 0; b < batch; ++b) {
      list[b].prompt = prompt(b);
      list[b].max_tokens = tokens;
      list[b].sampler.temperature = 0;
      list[b].ignore_eos = true;
    }
    return list;
  }

  Comparison compare(const std::string& what, const std::vector<std::string>& presets, Bytes budget,
                     std::size_t batch, std::size_t tokens) {
    CompareSettings settings;
    settings.requests = requests(batch, tokens);
    settings.options = options_;
    settings.options.memory = budget;
    settings.runs = runs_;
    settings.tokenizer = settings_.tokenizer;
    settings.interrupted = settings_.interrupted;
    settings.on_run = [&](std::size_t done, std::size_t all) {
      stage(fmt::format("{}: run {} of {}", what, done, all));
    };
    std::vector<Contender> contenders;
    for (const std::string& preset : presets) {
      Contender contender = reads_whole_experts(preset) ? settings_.whole : settings_.packed;
      contender.preset = preset;
      contenders.push_back(contender);
    }
    Comparison result = comparer_.run(contenders, settings);
    all_same_ = all_same_ && result.same_texts;
    return result;
  }

  // The budget under which the cache holds this share of all experts in full. Makes engines to find it.
  Bytes budget_for(double share) {
    engine::EngineOptions options = options_;
    options.preset = "z-basic-lru";
    options.scheduler = "serial";  // needs no profile
    const auto experts_at = [&](std::optional<Bytes> memory, Bytes* minimum) {
      options.memory = memory;
      const engine::Engine engine(*settings_.packed.checkpoint, *settings_.packed.model, options);
      if (minimum != nullptr) *minimum = engine.plan().minimum;
      all_experts_ = 0;
      for (const model::ExpertPieces& pieces : settings_.packed.model->experts)
        all_experts_ +=
            engine.expert_sizes()
                .bytes({static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)})
                .full;
      return engine.plan().experts;
    };
    Bytes minimum = 0;
    experts_at(std::nullopt, &minimum);
    const double wanted = share * static_cast<double>(all_experts_);
    double memory = static_cast<double>(minimum) + wanted + .05 * static_cast<double>(all_experts_);
    for (int i = 0; i < 5; ++i) {
      check_interrupted();
      memory += wanted - static_cast<double>(experts_at(static_cast<Bytes>(memory), nullptr));
      memory = std::max(memory, static_cast<double>(minimum));
    }
    return round_up(static_cast<Bytes>(memory), 64 * kKiB);
  }

  void arithmetic() {
    stage("counting exponents");
    exponents_ = exponent_facts(*settings_.whole.checkpoint, *settings_.whole.model,
                                settings_.quick ? 48 : 192, 4, settings_.interrupted);
    stage("random schedules");
    const std::size_t instances = settings_.quick ? 2000 : 20000;
    for (const char* scheduler :
         {"zip-affinity", "zip-affinity-literal", "zip-affinity-best-of", "p_sorted", "fifo"})
      ratios_.push_back({scheduler, makespan_ratio(scheduler, instances, 1)});
    Json codecs, ratios;
    for (const CodecSize& codec : exponents_.codecs) codecs[codec.codec] = codec.size;
    for (const auto& [name, ratio] : ratios_)
      ratios[name] = {{"instances", ratio.instances},
                      {"mean", ratio.mean},
                      {"worst", ratio.worst},
                      {"worst_of_bound", ratio.worst_of_bound}};
    report_.data["exponents"] = {{"words", exponents_.words},
                                 {"entropy_bits", exponents_.entropy_bits},
                                 {"symbols", exponents_.symbols},
                                 {"bound", exponents_.bound},
                                 {"codecs", codecs}};
    report_.data["makespan_ratio"] = ratios;
  }

  void budgets() {
    stage("sizing budgets");
    budgets_ = settings_.budgets;
    if (budgets_.empty())
      for (const double share :
           settings_.quick ? std::vector{.25, .5, .75} : std::vector{.25, .375, .5, .625, .75})
        budgets_.push_back(budget_for(share));
    std::vector<std::string> systems = published_baselines();
    for (const std::string& name : known({"z-basic-lru", "z-C", kPlanned})) systems.push_back(name);
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      sweep_.push_back(
          compare(fmt::format("budget {} of {}", i + 1, budgets_.size()), systems, budgets_[i], 1, tokens_));
      report_.data["budgets"].push_back(to_json(sweep_.back()));
    }
    const auto chart = [&](const char* title, const char* y, double RunFigures::*figure, double factor) {
      std::vector<PlotSeries> series;
      for (const std::string& name : systems) {
        series.push_back({name, {}});
        for (const Comparison& one : sweep_) {
          const Spread spread = one.find(name).of(figure);
          series.back().points.push_back(
              {std::round(10 * static_cast<double>(one.budget) / static_cast<double>(kMiB)) / 10,
               spread.median * factor, spread.low * factor, spread.high * factor});
        }
      }
      return line_chart(
          {title, "budget, MiB", y, fmt::format("medians of {} runs in turns; bars: least and most", runs_)},
          series, true);
    };
    picture("tpot.svg", "Time per output token against the budget, per system",
            chart("Time per output token", "ms per token (log)", &RunFigures::tpot_s, 1e3));
    picture("ttft.svg", "Time to the first token against the budget, per system",
            chart("Time to the first token", "ms (log)", &RunFigures::ttft_s, 1e3));
  }

  void ladder() {
    const std::size_t middle = budgets_.size() / 2;
    const std::vector<std::string> steps =
        known({"z-accelerate", "z-basic-fifo", "z-basic-marking", "z-basic-lru", "z-C", kPlanned});
    ladder_ = compare("ladder", steps, budgets_[middle], 1, tokens_);
    report_.data["ladder"] = to_json(ladder_);
    std::vector<PlotBar> bars;
    for (const Compared& one : ladder_.contenders) {
      const Spread spread = one.of(&RunFigures::tok_s);
      bars.push_back({one.preset, spread.median, spread.low, spread.high});
    }
    picture("ladder.svg",
            "Ablation: whole experts, compression with a flat cache, pools (+C), planned pools (+C+P)",
            bar_chart({"Ablation at " + format_bytes(budgets_[middle]), "preset", "tokens per second",
                       fmt::format("medians of {} runs in turns; bars: least and most", runs_)},
                      bars));
  }

  void batches() {
    std::vector<std::string> systems = published_baselines();
    systems.push_back(kPlanned);
    for (const std::size_t batch : batches_) {
      // Room for the keys and values of more sequences, beside the same experts.
      const Bytes more =
          (batch - 1) * engine::kv_bytes(settings_.packed.model->config, DType::kF32, options_.positions);
      batch_.push_back(compare(fmt::format("batch {}", batch), systems, budgets_[budgets_.size() / 2] + more,
                               batch, tokens_ / 2));
      report_.data["batches"].push_back({{"batch", batch}, {"comparison", to_json(batch_.back())}});
    }
  }

  void lengths() {
    std::vector<std::string> systems = known({"z-accelerate", "z-basic-lru", kPlanned});
    for (const std::size_t length : lengths_) {
      length_.push_back(compare(fmt::format("length {}", length), systems, budgets_[budgets_.size() / 2], 1,
                                std::max<std::size_t>(2, length)));
      report_.data["lengths"].push_back({{"tokens", length}, {"comparison", to_json(length_.back())}});
    }
  }

  void pictures_of_runs() {
    for (const char* preset : {"z-C+P", "z-C"}) {
      stage(std::string("watching ") + preset);
      engine::EngineOptions options = options_;
      options.preset = preset;
      options.memory = budgets_.front();
      options.profile = comparer_.profile(*settings_.packed.checkpoint);
      options.profile_if_it_fits = true;
      const model::ModelConfig& config = settings_.packed.model->config;
      engine::Engine engine(*settings_.packed.checkpoint, *settings_.packed.model, options);
      StateCounter states(config.sparse_layers(), config.moe.experts);
      fetch::Timeline timeline;
      engine.observe(&states);
      engine::GenerateRequest request = requests(1, tokens_).front();
      request.should_stop = settings_.interrupted;
      request.on_text = [&](const std::string&, std::size_t tokens) {
        if (tokens + 5 == tokens_ || tokens == 1) engine.record_timeline(tokens == 1 ? nullptr : &timeline);
      };
      engine::generate(engine, settings_.tokenizer, request);
      engine.record_timeline(nullptr);
      engine.observe(nullptr);
      const std::string file = preset == std::string("z-C") ? "equal" : "planned";
      const std::string which = file == "equal" ? "pools of equal shares (z-C)" : "planned pools (z-C+P)";
      picture("states-" + file + ".svg",
              fmt::format("In which state experts were found, by rank: {} at {}", which,
                          format_bytes(budgets_.front())),
              states_picture(which, states));
      picture("gantt-" + file + ".svg",
              "One layer of one decode step: reads, decoding and computing; " + which,
              layer_gantt("One layer of one decode step, " + which, timeline));
      const auto by_rank = states.by_rank();
      report_.data["states_by_rank"][preset] = {
          {"F", by_rank[0]}, {"C", by_rank[1]}, {"S", by_rank[2]}, {"E", by_rank[3]}, {"M", by_rank[4]}};
    }
  }

  void picture(const std::string& file, const std::string& caption, std::string svg) {
    report_.pictures.push_back({"zipmoe-" + file, caption, std::move(svg)});
  }

  ReportRow& row(std::string id, std::string quantity, std::string paper, std::string ours, Evidence evidence,
                 std::string note, std::string command = {}) {
    report_.rows.push_back({std::move(id), std::move(quantity), std::move(paper), std::move(ours), evidence,
                            std::move(note), command.empty() ? settings_.command : std::move(command)});
    return report_.rows.back();
  }
  std::string compare_command(const std::string& presets, Bytes budget, const std::string& more = "") const {
    return fmt::format("sluice compare {} --whole {} --preset {} -p \"{}\" -n {} --memory {} --runs {}{}",
                       settings_.packed_name, settings_.whole_name, presets, kPrompts[0], tokens_, budget,
                       runs_, more);
  }
  // 1 - planned / other of every published baseline and budget.
  std::vector<double> reductions(double RunFigures::*figure,
                                 const std::vector<std::string>& baselines) const {
    std::vector<double> values;
    for (const Comparison& one : sweep_)
      for (const std::string& name : baselines)
        values.push_back(1 - one.find(kPlanned).of(figure).median / one.find(name).of(figure).median);
    return values;
  }

  void rows();
  void timing_rows();

  const ZipmoeSettings& settings_;
  std::size_t tokens_;
  unsigned runs_;
  std::vector<std::size_t> batches_, lengths_;
  engine::EngineOptions options_;
  Comparer comparer_;
  Report report_;
  ExponentFacts exponents_;
  std::vector<std::pair<std::string, MakespanRatio>> ratios_;
  std::vector<Bytes> budgets_;
  Bytes all_experts_ = 0;
  std::vector<Comparison> sweep_, batch_, length_;
  Comparison ladder_;
  bool all_same_ = true;
};

void Reproducer::timing_rows() {
  const std::optional<engine::Profile> profile = comparer_.profile(*settings_.packed.checkpoint);
  if (profile && profile->model.chunks > 0 && profile->u.median > 0) {
    const double decode = profile->c.median * profile->model.chunks, read = profile->u.median;
    row("Z-F4",
        "threads from which decoding exponents beats reading them raw; disk's loss under decoding in the "
        "background",
        "3; 7.47 %", fmt::format("{:.0f}; n/a", std::max(1.0, std::ceil(decode / read))), Evidence::kRun,
        fmt::format("{}: one thread decodes a plane in {:.3f} ms, the disk reads it raw in {:.3f} ms, "
                    "several reads in flight. "
                    "The loss is not measured: here decoding shares the compute threads, there is no "
                    "background to it",
                    settings_.packed.checkpoint->codec(), decode * 1e3, read * 1e3),
        fmt::format("sluice profile {}", settings_.packed_name));
  } else {
    row("Z-F4",
        "threads from which decoding exponents beats reading them raw; disk's loss under decoding in the "
        "background",
        "3; 7.47 %", "n/a", Evidence::kNone, "the store has no coded exponents");
  }
}

void Reproducer::rows() {
  const Comparison &tight = sweep_.front(), &loose = sweep_.back(), &middle = sweep_[sweep_.size() / 2];
  const std::vector<std::string> baselines = published_baselines();
  const auto wait = [](const Comparison& one, const char* preset) {
    return percent(one.find(preset).of(&RunFigures::wait_share).median);
  };
  std::string names;
  for (const std::string& name : baselines) names += (names.empty() ? "" : ", ") + name;
  const std::string spread =
      fmt::format("{} to {}", format_bytes(budgets_.front()), format_bytes(budgets_.back()));

  row("Z-F1", "share of the time that waits for the disk, server to edge: decoder-only; encoder-decoder",
      "38.5 % to 80.1 %; 15.8 % to 41.7 %",
      fmt::format("z-accelerate {} to {}, {} {} to {}; n/a", wait(loose, "z-accelerate"),
                  wait(tight, "z-accelerate"), kPlanned, wait(loose, kPlanned), wait(tight, kPlanned)),
      Evidence::kRun,
      "from the largest budget to the smallest; there is one machine here, and no checkpoint of an "
      "encoder-decoder is bundled",
      compare_command("z-accelerate,z-C+P", budgets_.front(), " --json"));
  row("Z-F2", "entropy of exponents, bits, of 3 models; share of the 256 symbols that occur",
      "2.651, 2.563, 2.554; 14.06, 11.33, 14.84 %",
      fmt::format("{:.3f}; {}", exponents_.entropy_bits, percent(exponents_.symbols / 256.0)),
      Evidence::kArithmetic,
      fmt::format("{} words of experts of {}", exponents_.words, settings_.whole_name));
  std::string sizes, codec_names;
  std::ranges::sort(exponents_.codecs, {}, &CodecSize::codec);  // as the paper: LZ4 first
  for (const CodecSize& codec : exponents_.codecs) {
    sizes += percent(codec.size) + "; ";
    codec_names += (codec_names.empty() ? "" : ", ") + (codec.codec == "lz4" ? "LZ4HC" : codec.codec);
  }
  row("Z-F3", "size after LZ4HC; ZSTD; entropy bound", "74 %; 68 %; 66.02, 65.96, 66.52 %",
      sizes + percent(exponents_.bound), Evidence::kArithmetic,
      fmt::format("here: {}; bound (8 + H) / 16, by which the paper's entropies would be 66.57, 66.02, 65.96 "
                  "%; 4 chunks a matrix",
                  codec_names));
  timing_rows();
  row("Z-F7", "reduction of TPOT; of TTFT: decoder-only; encoder-decoder",
      "62.65–97.97 %; 53.25–87.90 %; 4.99–81.24 %, at most 83.45 %",
      fmt::format("{}; {}; n/a", range(reductions(&RunFigures::tpot_s, baselines), 100, " %"),
                  range(reductions(&RunFigures::ttft_s, baselines), 100, " %")),
      Evidence::kRun,
      fmt::format("{} against {} over budgets of {}; against z-basic-lru: TPOT {}, TTFT {}. No "
                  "encoder-decoder is bundled",
                  kPlanned, names, spread, range(reductions(&RunFigures::tpot_s, {"z-basic-lru"}), 100, " %"),
                  range(reductions(&RunFigures::ttft_s, {"z-basic-lru"}), 100, " %")),
      compare_command("z-accelerate,z-deepspeed,z-basic-lru,z-C,z-C+P", budgets_.front()));
  std::string gains;
  std::vector<std::string> batch_names;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    std::vector<double> values;
    for (const std::string& name : baselines)
      values.push_back(batch_[i].find(kPlanned).of(&RunFigures::tok_s).median /
                       batch_[i].find(name).of(&RunFigures::tok_s).median);
    gains += fmt::format("{}B={}: {}", gains.empty() ? "" : ", ", batches_[i], range(values, 1, "×"));
  }
  row("Z-F8", "gain in throughput at B = 1, 4, 16: decoder-only; encoder-decoder", "1.79–42.49×; 1.31–5.82×",
      gains + "; n/a", Evidence::kRun,
      fmt::format("{} against {}, different prompts decoded together", kPlanned, names),
      compare_command("z-accelerate,z-deepspeed,z-C+P", budgets_[budgets_.size() / 2], " --batch 4"));
  std::string speeds;
  for (std::size_t i = 0; i < length_.size(); ++i) {
    const auto e2e = [&](const char* name) { return length_[i].find(name).of(&RunFigures::e2e_s).median; };
    speeds += fmt::format("{}{} tokens: {:.2f}× ({:.2f}×)", speeds.empty() ? "" : ", ", lengths_[i],
                          e2e("z-accelerate") / e2e(kPlanned), e2e("z-basic-lru") / e2e(kPlanned));
  }
  row("Z-F9", "end-to-end speed-up against the length of the output: decoder-only; encoder-decoder",
      "3.03–42.49×; 1.11–5.64×", speeds + "; n/a", Evidence::kRun,
      fmt::format("{} against z-accelerate (z-basic-lru) at {}", kPlanned,
                  format_bytes(budgets_[budgets_.size() / 2])),
      compare_command("z-accelerate,z-basic-lru,z-C+P", budgets_[budgets_.size() / 2]));
  const auto figure = [&](const char* name, double RunFigures::*member) {
    return ladder_.find(name).of(member).median;
  };
  const auto basic = [&](double RunFigures::*member) {
    return (figure("z-basic-fifo", member) + figure("z-basic-marking", member) +
            figure("z-basic-lru", member)) /
           3;
  };
  const double base_tok = figure("z-accelerate", &RunFigures::tok_s), basic_tok = basic(&RunFigures::tok_s),
               c_tok = figure("z-C", &RunFigures::tok_s), cp_tok = figure(kPlanned, &RunFigures::tok_s);
  const std::string core =
      std::abs(cp_tok - base_tok) > 1e-9
          ? fmt::format("core share of the gain {:.1f} %", 100 * (basic_tok - base_tok) / (cp_tok - base_tok))
          : "no gain";
  row("Z-F10", "ablation, tok/s (E2E s): baseline, basic average, +C, +C+P",
      "DeepSeek 1.60 (585.96), 4.43 (204.05), 5.18 (176.68), 5.30 (173.23); Qwen1.5 1.99 (515.12), 6.39 "
      "(160.33), 7.64 (134.10), 7.79 (–)",
      fmt::format("{:.2f} ({:.3f}), {:.2f} ({:.3f}), {:.2f} ({:.3f}), {:.2f} ({:.3f})", base_tok,
                  figure("z-accelerate", &RunFigures::e2e_s), basic_tok, basic(&RunFigures::e2e_s), c_tok,
                  figure("z-C", &RunFigures::e2e_s), cp_tok, figure(kPlanned, &RunFigures::e2e_s)),
      Evidence::kRun, fmt::format("at {}; {} (paper: 76.5, 75.9 %)", format_bytes(ladder_.budget), core),
      compare_command("z-accelerate,z-basic-fifo,z-basic-marking,z-basic-lru,z-C,z-C+P", ladder_.budget));
  const auto against = [&](double RunFigures::*member) {
    return percent(1 -
                   middle.find(kPlanned).of(member).median / middle.find("z-accelerate").of(member).median);
  };
  row("Z-A", "page cache removed (32 GB occupied): reduction of TTFT; of TPOT", "56.64 %; 53.32 %",
      against(&RunFigures::ttft_s) + "; " + against(&RunFigures::tpot_s), Evidence::kRun,
      fmt::format("no run here has a page cache to use: reads go past it, and what it takes counts. {} "
                  "against z-accelerate at {}",
                  kPlanned, format_bytes(middle.budget)),
      compare_command("z-accelerate,z-C+P", middle.budget));
  const auto& [scheduler, ratio] = ratios_.front();
  std::string others;
  for (std::size_t i = 1; i < ratios_.size(); ++i)
    others += fmt::format("{}{} {:.3f}", i > 1 ? ", " : "", ratios_[i].first, ratios_[i].second.mean);
  row("Z-T", "approximation ratio", "≤ 3 − 1/L",
      fmt::format("worst {:.3f}, mean {:.3f}; worst share of the bound {:.3f}", ratio.worst, ratio.mean,
                  ratio.worst_of_bound),
      Evidence::kArithmetic,
      fmt::format("{} over {} random instances, against a lower bound of the optimum (stronger than the "
                  "theorem); means of others: {}",
                  scheduler, ratio.instances, others));
  std::vector<double> faster;
  for (const std::string& name : baselines)
    faster.push_back(cp_tok / middle.find(name).of(&RunFigures::tok_s).median);
  row("Z-abs", "abstract: reduction of latency up to; throughput up to", "72.77 %; 6.76×", "n/a",
      Evidence::kNone,
      "the paper's own ranges (Z-F7, Z-F8) say otherwise, so it is not clear what is compared; probably the "
      "best baseline only");

  // Not in the paper's tables: the order that its argument predicts.
  std::string order, verdicts;
  for (const Comparison& one : sweep_) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const Compared& it : one.contenders)
      ranked.emplace_back(it.of(&RunFigures::tpot_s).median, it.preset);
    std::ranges::sort(ranked);
    order += fmt::format("{}{}: ", order.empty() ? "" : "; ", format_bytes(one.budget));
    for (std::size_t i = 0; i < ranked.size(); ++i)
      order += fmt::format("{}{} {:.2f}", i > 0 ? " < " : "", ranked[i].second, ranked[i].first * 1e3);
    const Compared& it = one.find(kPlanned);
    if (it.planned)
      verdicts += fmt::format("{}{}: F {} C {} S {} E {} of a layer, limit {}", verdicts.empty() ? "" : "; ",
                              format_bytes(one.budget), it.planned->slots.f, it.planned->slots.c,
                              it.planned->slots.s, it.planned->slots.e, it.planned->limit);
  }
  row("Z-order", "order of systems by TPOT, ms (ours, not a figure of the paper)",
      "accelerate, deepspeed ≫ MoE-Infinity, basic > +C ≥ +C+P", order, Evidence::kRun,
      fmt::format("plans: {}. Texts of all runs {}", verdicts, all_same_ ? "were equal" : "DIFFERED"),
      compare_command("z-accelerate,z-deepspeed,z-basic-lru,z-C,z-C+P", middle.budget));

  const auto table = [](const Comparison& one) {
    std::string text =
        "| preset | tok/s (least, most) | TTFT s | read per token | hits | CPU s per token | peak | waits "
        "for the disk |\n|---|---|---|---|---|---|---|---|\n";
    for (const Compared& it : one.contenders) {
      const Spread tok_s = it.of(&RunFigures::tok_s);
      text +=
          fmt::format("| {} | {:.2f} ({:.2f}, {:.2f}) | {:.4f} | {} | {:.0f} % | {:.4f} | {} | {} |\n",
                      it.preset, tok_s.median, tok_s.low, tok_s.high, it.of(&RunFigures::ttft_s).median,
                      format_bytes(static_cast<Bytes>(it.of(&RunFigures::bytes_per_token).median)),
                      100 * it.of(&RunFigures::hit_rate).median, it.of(&RunFigures::cpu_s_per_token).median,
                      format_bytes(static_cast<Bytes>(it.of(&RunFigures::peak).high)),
                      percent(it.of(&RunFigures::wait_share).median));
    }
    return text;
  };
  for (const Comparison& one : sweep_)
    report_.sections.push_back({fmt::format("Budget {}", format_bytes(one.budget)), table(one)});
  report_.sections.push_back({fmt::format("Ablation at {}", format_bytes(ladder_.budget)), table(ladder_)});
  report_.data["texts_equal"] = all_same_;
  report_.data["quick"] = settings_.quick;
}

}  // namespace

const std::vector<std::string>& zipmoe_row_ids() {
  static const std::vector<std::string> ids = {"Z-F1", "Z-F2",  "Z-F3", "Z-F4", "Z-F7",  "Z-F8",
                                               "Z-F9", "Z-F10", "Z-A",  "Z-T",  "Z-abs", "Z-order"};
  return ids;
}

Report reproduce_zipmoe(const ZipmoeSettings& settings) { return Reproducer(settings).run(); }

}  // namespace sluice::lab
