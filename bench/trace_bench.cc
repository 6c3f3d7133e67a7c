// The cost of recording a trace per decode step: one engine records its steps or not at random, so that both
// kinds meet the same neighbours. `--model DIR` `--tokens N` `--memory SIZE` `--threads N`; writes and
// removes `--out FILE`; `--json FILE` also writes the rows there.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#include <unistd.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/session/sequence.h"
#include "engine/session/step.h"
#include "engine/trace_recorder.h"
#include "measure.h"
#include "model/architecture.h"
#include "report.h"
#include "store/checkpoint.h"
#include "store/source/open_checkpoint.h"

namespace {

using namespace sluice;  // NOLINT
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Wraps the recorder and measures the time spent in it.
class Timed final : public engine::RoutingObserver {
 public:
  explicit Timed(engine::TraceRecorder& recorder) : recorder_(recorder) {}
  void on_step(const engine::Step& step) override {
    const auto start = Clock::now();
    recorder_.on_step(step);
    inside += seconds_since(start);
  }
  void on_routing(const experts::ScoresView& scores, const experts::Routing& routing) override {
    const auto start = Clock::now();
    recorder_.on_routing(scores, routing);
    inside += seconds_since(start);
  }
  double inside = 0;

 private:
  engine::TraceRecorder& recorder_;
};

}  // namespace

int main(int argc, char** argv) try {
  engine::process_baseline();
  bench::check_options(argc, argv, {"model", "tokens", "out", "memory", "threads", "json"});
  const std::string path = bench::option(argc, argv, "model", "models/fable-moe-18m");
  const std::size_t steps = bench::whole_option(argc, argv, "tokens", 900);
  const std::string out = bench::option(argc, argv, "out", "trace_bench.trace");
  const std::unique_ptr<store::Checkpoint> checkpoint = store::open_checkpoint(path);
  const model::Model model = model::describe_model(*checkpoint);
  engine::EngineOptions options;
  options.positions = std::min<std::size_t>(steps + 8, model.config.max_positions);
  options.memory = parse_size(bench::option(argc, argv, "memory", "96MiB"), "--memory");
  options.threads = static_cast<unsigned>(std::stoul(bench::option(argc, argv, "threads", "0")));
  options.recording = trace::TraceWriter::kMemory;
  engine::Engine engine(*checkpoint, model, engine::resolve(options, *checkpoint, model));

  ::unlink(out.c_str());
  trace::TraceWriter writer = trace::TraceWriter::create(out, engine::trace_header(engine));
  writer.begin_run(engine::run_record(engine));
  engine::TraceRecorder recorder(writer);
  Timed timed(recorder);

  const std::unique_ptr<engine::Sequence> sequence = engine.new_sequence();
  const std::vector<tokenizer::TokenId> prompt = {5, 6, 7, 8};
  std::vector<float> logits;
  engine.prefill(*sequence, prompt,
                 {[](std::size_t t) { return t == 3; },
                  [&](std::size_t, std::span<const float> row) { logits.assign(row.begin(), row.end()); }});
  std::mt19937 random(1);
  std::vector<double> plain, recorded, inside;
  while (sequence->length() < sequence->positions()) {
    const auto token =
        static_cast<tokenizer::TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const bool record = random() % 2 == 0;  // at random: alternating would separate even and odd positions
    engine.observe(record ? &timed : nullptr);
    timed.inside = 0;
    const auto start = Clock::now();
    const std::span<const float> row = engine.decode(*sequence, token);
    const double took = seconds_since(start);
    logits.assign(row.begin(), row.end());
    (record ? recorded : plain).push_back(took);
    if (record) inside.push_back(timed.inside);
  }
  writer.close();
  ::unlink(out.c_str());
  const double median_plain = bench::quantile(plain, 0.5), median_recorded = bench::quantile(recorded, 0.5);
  fmt::print("{}: {} decode steps, half of them, at random, recorded\n", path,
             plain.size() + recorded.size());
  fmt::print("not recorded   {:.1f} µs a step (quartiles {:.1f} … {:.1f})\n", 1e6 * median_plain,
             1e6 * bench::quantile(plain, 0.25), 1e6 * bench::quantile(plain, 0.75));
  fmt::print(
      "recorded       {:.1f} µs a step (quartiles {:.1f} … {:.1f}): {:+.2f} % (lower quartiles: {:+.2f} %)\n",
      1e6 * median_recorded, 1e6 * bench::quantile(recorded, 0.25), 1e6 * bench::quantile(recorded, 0.75),
      100 * (median_recorded / median_plain - 1),
      100 * (bench::quantile(recorded, 0.25) / bench::quantile(plain, 0.25) - 1));
  fmt::print("in the recorder {:.1f} µs a step: {:.2f} % of a step that is not recorded\n",
             1e6 * bench::quantile(inside, 0.5), 100 * bench::quantile(inside, 0.5) / median_plain);
  bench::Report report("trace", argc, argv);
  report.add({.name = "decode step, not recorded", .seconds = plain, .detail = true});
  report.add({.name = "decode step, recorded", .seconds = recorded, .detail = true});
  report.add({.name = "in the recorder, of a step",
              .seconds = inside,
              .figures = {{"% of a step", 100 * bench::quantile(inside, 0.5) / median_plain}}});
  report.write();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sluice_bench_trace: %s\n", error.what());
  return 1;
}
