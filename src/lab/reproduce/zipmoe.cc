#include "lab/reproduce/zipmoe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/cpu.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/system_memory.h"
#include "engine/model_identity.h"
#include "experts/registry.h"
#include "lab/reproduce/exponents.h"
#include "lab/reproduce/makespan_ratio.h"
#include "lab/reproduce/run_pictures.h"
#include "lab/reproduce/svg.h"
#include "lab/reproduce/zipmoe_replay.h"

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
                                : std::vector<std::size_t>{std::max<std::size_t>(2, tokens_ / 3), tokens_,
                                                           tokens_ * 3}) {
    SLUICE_CHECK(tokens_ >= 4, "quarters of the output must be a token");
    const std::size_t most = settings.packed.model->config.max_positions,
                      needed = positions(1, lengths_.back());
    if (needed > most)
      throw Error(ErrorKind::kUsage, "the longest output does not fit the model's context")
          .in("-n")
          .expected(fmt::format("at most {} positions", most))
          .found(fmt::format("{} of a prompt and {} tokens, {} times -n", needed, lengths_.back(),
                             lengths_.back() / tokens_))
          .fix("give fewer tokens");
    if (!settings.trace.empty()) check_zipmoe_trace(settings.trace);  // before minutes of runs
    options_ = settings.options;
    options_.positions = positions(1, tokens_);
    report_.title = "ZipMoE (arXiv 2601.21198), tried again";
    report_.command = settings.command;
    report_.prepare = settings.prepare;
    report_.machine =
        fmt::format("{}, {} threads, {} of memory; reads: {}", cpu_info().model,
                    options_.threads != 0 ? options_.threads : usable_cpus(),
                    format_bytes(read_memory_limits().machine_total), fetch::io_mode_name(options_.fetch.io));
  }

  Report run() {
    identify();
    arithmetic();
    budgets();
    ladder();
    batches();
    lengths();
    pictures_of_runs();
    replay();
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

  // What the key/value cache needs for so many prompts that are gone on from by so many tokens each, as
  // `sluice compare` reserves it.
  std::size_t positions(std::size_t batch, std::size_t tokens) const {
    std::size_t longest = 0;
    for (std::size_t b = 0; b < batch; ++b) longest = std::max(longest, prompt(b).size());
    return longest + tokens;
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
    settings.options.positions = positions(batch, tokens);
    settings.runs = runs_;
    settings.tokenizer = settings_.tokenizer;
    settings.interrupted = settings_.interrupted;
    settings.on_run = [&](std::size_t done, std::size_t all) {
      stage(fmt::format("{}: run {} of {}", what, done, all));
    };
    std::vector<Contender> contenders;
    for (const std::string& preset : presets) {
      Contender contender = experts::find_preset(preset).whole_experts ? settings_.whole : settings_.packed;
      contender.preset = preset;
      contenders.push_back(contender);
    }
    Comparison result = comparer_.run(contenders, settings);
    all_same_ = all_same_ && result.same_texts;
    return result;
  }

  void identify() {
    stage("looking at the model");
    engine::EngineOptions options = options_;
    options.preset = "z-basic-lru";
    options.scheduler = "serial";  // needs no profile
    if (!settings_.budgets.empty()) options.memory = settings_.budgets.front();
    const engine::Engine engine(*settings_.packed.checkpoint, *settings_.packed.model, options);
    std::string budgets;
    for (const Bytes budget : settings_.budgets) budgets += fmt::format(" {}", budget);
    const std::string trace = settings_.trace.substr(settings_.trace.rfind('/') + 1);
    report_.configuration = {
        .model = hex64(engine::model_identity(engine)),
        .flags = fmt::format("{}{} tokens, {} runs, budgets{}, trace {}, isa {}, io {}",
                             settings_.quick ? "quick, " : "", tokens_, runs_,
                             budgets.empty() ? " by shares" : budgets, trace.empty() ? "none" : trace,
                             isa_name(engine.isa()), fetch::io_mode_name(options_.fetch.io)),
        .machine = fmt::format("{}, {} threads", cpu_info().model, engine.threads()),
        .version = settings_.version};
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
    const std::vector<std::string> systems = sweep_systems();
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
    ladder_ = compare("ladder", ladder_steps(), middle(), 1, tokens_);
    report_.data["ladder"] = to_json(ladder_);
    std::vector<PlotBar> bars;
    for (const Compared& one : ladder_.contenders) {
      const Spread spread = one.of(&RunFigures::tok_s);
      bars.push_back({one.preset, spread.median, spread.low, spread.high});
    }
    picture("ladder.svg",
            "Ablation: whole experts, compression with a flat cache, pools (+C), planned pools (+C+P)",
            bar_chart({"Ablation at " + format_bytes(middle()), "preset", "tokens per second",
                       fmt::format("medians of {} runs in turns; bars: least and most", runs_)},
                      bars));
  }

  // Who is compared for what; commands of single rows name the same.
  static std::vector<std::string> sweep_systems() {
    std::vector<std::string> systems = published_baselines();
    for (const std::string& name : known({"z-basic-lru", "z-C", kPlanned})) systems.push_back(name);
    return systems;
  }
  static std::vector<std::string> ladder_steps() {
    return known({"z-accelerate", "z-basic-fifo", "z-basic-marking", "z-basic-lru", "z-C", kPlanned});
  }
  static std::vector<std::string> batch_systems() {
    std::vector<std::string> systems = published_baselines();
    systems.emplace_back(kPlanned);
    return systems;
  }
  static std::vector<std::string> length_systems() {
    return known({"z-accelerate", "z-basic-lru", kPlanned});
  }
  Bytes middle() const { return budgets_[budgets_.size() / 2]; }

  void batches() {
    const std::vector<std::string> systems = batch_systems();
    for (const std::size_t batch : batches_) {
      // Room for the keys and values of more sequences, beside the same experts.
      const Bytes more = (batch - 1) * engine::kv_bytes(settings_.packed.model->config, DType::kF32,
                                                        positions(batch, tokens_ / 2));
      batch_.push_back(compare(fmt::format("batch {}", batch), systems, middle() + more, batch, tokens_ / 2));
      batch_budgets_.push_back(middle() + more);
      report_.data["batches"].push_back({{"batch", batch}, {"comparison", to_json(batch_.back())}});
    }
  }

  void lengths() {
    const std::vector<std::string> systems = length_systems();
    for (const std::size_t length : lengths_) {
      length_.push_back(compare(fmt::format("length {}", length), systems, middle(), 1, length));
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
        if (tokens == std::max<std::size_t>(5, tokens_) - 4) engine.record_timeline(&timeline);
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

  void replay() {
    const std::optional<engine::Profile> profile = comparer_.profile(*settings_.packed.checkpoint);
    if (!profile || profile->model.chunks == 0) return;
    replay_ = replay_zipmoe({.trace = settings_.trace,
                             .batches = batches_,
                             .stop = settings_.interrupted,
                             .on_stage = [&](const std::string& text) { stage(text); }},
                            *profile);
    report_.data["replay"] = replay_->data;
  }

  void row(std::string id, std::string quantity, std::string paper, std::string ours,
           std::vector<Evidence> evidence, std::string note, std::vector<std::string> commands = {}) {
    report_.rows.push_back({std::move(id), std::move(quantity), std::move(paper), std::move(ours),
                            std::move(evidence), std::move(note), std::move(commands)});
  }
  // A row that is simulated and run.
  void row_of_both(std::string id, std::string quantity, std::string paper,
                   std::string ZipmoeReplay::*replayed, const std::string& ran, const std::string& note,
                   std::vector<std::string> commands) {
    if (replay_) {
      const std::string& figures = (*replay_).*replayed;
      row(std::move(id), std::move(quantity), std::move(paper), "S " + figures + "; R " + ran,
          {Evidence::kReplay, Evidence::kRun},
          "R: " + note + ". S: section \"Simulated rows\"" +
              (replay_->missing.empty() ? "" : "; " + replay_->missing),
          std::move(commands));
    } else {
      row(std::move(id), std::move(quantity), std::move(paper), "S n/a; R " + ran,
          {Evidence::kNone, Evidence::kRun},
          "R: " + note + ". S: the experts are stored whole, so there is no time of decoding to replay with",
          std::move(commands));
    }
  }
  // The command that runs what compare() ran.
  std::string compare_command(const std::vector<std::string>& presets, Bytes budget, std::size_t batch,
                              std::size_t tokens) const {
    std::string names, prompts;
    for (const std::string& name : presets) names += (names.empty() ? "" : ",") + name;
    for (std::size_t b = 0; b < batch; ++b) {
      if (settings_.tokenizer != nullptr) {
        prompts += fmt::format(" -p \"{}\"", kPrompts[b % std::size(kPrompts)]);
        continue;
      }
      std::string ids;
      for (const model::TokenId id : prompt(b)) ids += (ids.empty() ? "" : ",") + std::to_string(id);
      prompts += " --tokens " + ids;
    }
    return fmt::format("sluice compare {} --whole {} --preset {}{} -n {} --memory {} --runs {}{}",
                       settings_.packed_name, settings_.whole_name, names, prompts, tokens, budget, runs_,
                       settings_.flags);
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
  std::vector<Bytes> batch_budgets_;  // parallel to batch_
  Comparison ladder_;
  std::optional<ZipmoeReplay> replay_;  // none: there are no costs to replay with
  bool all_same_ = true;
};

void Reproducer::timing_rows() {
  const std::string quantity =
      "threads from which decoding exponents beats reading them raw; disk's loss under decoding in the "
      "background";
  const std::optional<engine::Profile> profile = comparer_.profile(*settings_.packed.checkpoint);
  if (!profile || profile->model.chunks == 0 || profile->u.median <= 0)
    return row("Z-F4", quantity, "3; 7.47 %", "n/a", {Evidence::kNone}, "the store has no coded exponents");
  const double decode = profile->c.median * profile->model.chunks, read = profile->u.median;
  row("Z-F4", quantity, "3; 7.47 %",
      fmt::format("{:.0f}; not measured", std::max(1.0, std::ceil(decode / read))),
      {Evidence::kRun, Evidence::kNone},
      fmt::format(
          "{}: one thread decodes a plane in {:.3f} ms, the disk reads it raw in {:.3f} ms, several reads "
          "in flight. The loss is not measured: here decoding shares the compute threads, there is no "
          "background to it",
          settings_.packed.checkpoint->codec(), decode * 1e3, read * 1e3),
      {"sluice profile " + settings_.packed_name + settings_.flags});
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
  std::vector<std::string> commands;

  row_of_both(
      "Z-F1", "share of the time that waits for the disk, server to edge: decoder-only; encoder-decoder",
      "38.5 % to 80.1 %; 15.8 % to 41.7 %", &ZipmoeReplay::f1,
      fmt::format("z-accelerate {} to {}, {} {} to {}", wait(loose, "z-accelerate"),
                  wait(tight, "z-accelerate"), kPlanned, wait(loose, kPlanned), wait(tight, kPlanned)),
      "from the largest budget to the smallest, since there is one machine; S from 32 to 2 GB/s, "
      "z-accelerate",
      {compare_command({"z-accelerate", kPlanned}, budgets_.back(), 1, tokens_) + " --json",
       compare_command({"z-accelerate", kPlanned}, budgets_.front(), 1, tokens_) + " --json"});
  row("Z-F2", "entropy of exponents, bits, of 3 models; share of the 256 symbols that occur",
      "2.651, 2.563, 2.554; 14.06, 11.33, 14.84 %",
      fmt::format("{:.3f}; {}", exponents_.entropy_bits, percent(exponents_.symbols / 256.0)),
      {Evidence::kArithmetic},
      fmt::format("{} words of experts of {}", exponents_.words, settings_.whole_name));
  std::string sizes, codec_names;
  std::ranges::sort(exponents_.codecs, {}, &CodecSize::codec);  // as the paper: LZ4 first
  for (const CodecSize& codec : exponents_.codecs) {
    sizes += percent(codec.size) + "; ";
    codec_names += (codec_names.empty() ? "" : ", ") + (codec.codec == "lz4" ? "LZ4HC" : codec.codec);
  }
  row("Z-F3", "size after LZ4HC; ZSTD; entropy bound", "74 %; 68 %; 66.02, 65.96, 66.52 %",
      sizes + percent(exponents_.bound), {Evidence::kArithmetic},
      fmt::format("here: {}; bound (8 + H) / 16, by which the paper's entropies would be 66.57, 66.02, 65.96 "
                  "%; 4 chunks a matrix",
                  codec_names));
  timing_rows();
  for (const Bytes budget : budgets_)
    commands.push_back(compare_command(sweep_systems(), budget, 1, tokens_));
  row_of_both("Z-F7", "reduction of TPOT / of TTFT: decoder-only; encoder-decoder",
              "62.65–97.97 % / 53.25–87.90 %; 4.99–81.24 % / ≤ 83.45 %", &ZipmoeReplay::f7,
              fmt::format("{} / {}", range(reductions(&RunFigures::tpot_s, baselines), 100, " %"),
                          range(reductions(&RunFigures::ttft_s, baselines), 100, " %")),
              fmt::format("{} against {} over budgets of {}; against z-basic-lru: TPOT {}, TTFT {}", kPlanned,
                          names, spread, range(reductions(&RunFigures::tpot_s, {"z-basic-lru"}), 100, " %"),
                          range(reductions(&RunFigures::ttft_s, {"z-basic-lru"}), 100, " %")),
              std::exchange(commands, {}));
  std::string gains;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    std::vector<double> values;
    for (const std::string& name : baselines)
      values.push_back(batch_[i].find(kPlanned).of(&RunFigures::tok_s).median /
                       batch_[i].find(name).of(&RunFigures::tok_s).median);
    gains += fmt::format("{}B={}: {}", gains.empty() ? "" : ", ", batches_[i], range(values, 1, "×"));
    commands.push_back(compare_command(batch_systems(), batch_budgets_[i], batches_[i], tokens_ / 2));
  }
  row_of_both("Z-F8", "gain in throughput at B = 1, 4, 16: decoder-only; encoder-decoder",
              "1.79–42.49×; 1.31–5.82×", &ZipmoeReplay::f8, gains,
              fmt::format("{} against {}, different prompts decoded together", kPlanned, names),
              std::exchange(commands, {}));
  std::string speeds;
  for (std::size_t i = 0; i < length_.size(); ++i) {
    const auto e2e = [&](const char* name) { return length_[i].find(name).of(&RunFigures::e2e_s).median; };
    speeds += fmt::format("{}{} tokens: {:.2f}× ({:.2f}×)", speeds.empty() ? "" : ", ", lengths_[i],
                          e2e("z-accelerate") / e2e(kPlanned), e2e("z-basic-lru") / e2e(kPlanned));
    commands.push_back(compare_command(length_systems(), this->middle(), 1, lengths_[i]));
  }
  row_of_both("Z-F9", "end-to-end speed-up against the length of the output: decoder-only; encoder-decoder",
              "3.03–42.49×; 1.11–5.64×", &ZipmoeReplay::f9, speeds,
              fmt::format("{} against z-accelerate (z-basic-lru) at {}; S against {}", kPlanned,
                          format_bytes(this->middle()), names),
              std::exchange(commands, {}));
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
      cp_tok > basic_tok && basic_tok > base_tok  // otherwise there is nothing to share out
          ? fmt::format("core share of the gain {:.1f} %", 100 * (basic_tok - base_tok) / (cp_tok - base_tok))
          : "planned pools are not ahead of the rest";
  row_of_both(
      "Z-F10", "ablation, tok/s (E2E s): baseline, basic average, +C, +C+P",
      "DeepSeek 1.60 (585.96), 4.43 (204.05), 5.18 (176.68), 5.30 (173.23); Qwen1.5 1.99 (515.12), 6.39 "
      "(160.33), 7.64 (134.10), 7.79 (–)",
      &ZipmoeReplay::f10,
      fmt::format("{:.2f} ({:.3f}), {:.2f} ({:.3f}), {:.2f} ({:.3f}), {:.2f} ({:.3f})", base_tok,
                  figure("z-accelerate", &RunFigures::e2e_s), basic_tok, basic(&RunFigures::e2e_s), c_tok,
                  figure("z-C", &RunFigures::e2e_s), cp_tok, figure(kPlanned, &RunFigures::e2e_s)),
      fmt::format("at {}; {} (paper: 76.5, 75.9 %)", format_bytes(ladder_.budget), core),
      {compare_command(ladder_steps(), this->middle(), 1, tokens_)});
  const auto against = [&](double RunFigures::*member) {
    return percent(1 -
                   middle.find(kPlanned).of(member).median / middle.find("z-accelerate").of(member).median);
  };
  row("Z-A", "page cache removed (32 GB occupied): reduction of TTFT; of TPOT", "56.64 %; 53.32 %",
      against(&RunFigures::ttft_s) + "; " + against(&RunFigures::tpot_s), {Evidence::kRun},
      fmt::format(
          "{}. {} against z-accelerate at {}",
          options_.fetch.io == fetch::IoMode::kDirect
              ? "no run here has a page cache to use: reads go past it (--io direct), and what it takes "
                "counts"
              : fmt::format("not quite the paper's condition: with --io {} reads go through the page "
                            "cache, and pages are dropped behind each; what was there before stays",
                            fetch::io_mode_name(options_.fetch.io)),
          kPlanned, format_bytes(middle.budget)),
      {compare_command({"z-accelerate", kPlanned}, this->middle(), 1, tokens_)});
  const auto& [scheduler, ratio] = ratios_.front();
  std::string others;
  for (std::size_t i = 1; i < ratios_.size(); ++i)
    others += fmt::format("{}{} {:.3f}", i > 1 ? ", " : "", ratios_[i].first, ratios_[i].second.mean);
  row("Z-T", "approximation ratio", "≤ 3 − 1/L",
      fmt::format("worst {:.3f}, mean {:.3f}; worst share of the bound {:.3f}", ratio.worst, ratio.mean,
                  ratio.worst_of_bound),
      {Evidence::kArithmetic},
      fmt::format("{} over {} random instances, against a lower bound of the optimum (stronger than the "
                  "theorem); means of others: {}",
                  scheduler, ratio.instances, others));
  row("Z-abs", "abstract: reduction of latency up to; throughput up to", "72.77 %; 6.76×", "n/a",
      {Evidence::kNone},
      "the paper's own ranges (Z-F7, Z-F8) say otherwise, so it is not clear what is compared; probably the "
      "best baseline only");

  // Not in the paper's tables: the order that its argument predicts, and what planning chose.
  std::string order =
      "By the paper's argument: z-accelerate and z-deepspeed by far the slowest, then z-moe-infinity and "
      "z-basic, "
      "then z-C, then z-C+P. Here, by TPOT in ms:\n\n";
  for (const Comparison& one : sweep_) {
    std::vector<std::pair<double, std::string>> ranked;
    for (const Compared& it : one.contenders)
      ranked.emplace_back(it.of(&RunFigures::tpot_s).median, it.preset);
    std::ranges::sort(ranked);
    order += fmt::format("- {}: ", format_bytes(one.budget));
    for (std::size_t i = 0; i < ranked.size(); ++i)
      order += fmt::format("{}{} {:.2f}", i > 0 ? " < " : "", ranked[i].second, ranked[i].first * 1e3);
    const Compared& it = one.find(kPlanned);
    if (it.planned)
      order += fmt::format("; planned: F {} C {} S {} E {} of a layer, limit {}", it.planned->slots.f,
                           it.planned->slots.c, it.planned->slots.s, it.planned->slots.e, it.planned->limit);
    order += '\n';
  }
  order +=
      fmt::format("\nTexts of all runs {}.\n", all_same_ ? "were equal" : "DIFFERED, which must never be");
  report_.sections.push_back({"Expected order", order});
  if (replay_) report_.sections.push_back({"Simulated rows", replay_->conditions});

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
  static const std::vector<std::string> ids = {"Z-F1", "Z-F2",  "Z-F3", "Z-F4", "Z-F7", "Z-F8",
                                               "Z-F9", "Z-F10", "Z-A",  "Z-T",  "Z-abs"};
  return ids;
}

Report reproduce_zipmoe(const ZipmoeSettings& settings) { return Reproducer(settings).run(); }

}  // namespace sluice::lab
