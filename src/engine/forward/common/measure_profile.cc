#include "engine/forward/common/measure_profile.h"

#include <algorithm>
#include <random>
#include <span>

#include "base/error.h"
#include "base/machine/thread_pool.h"
#include "engine/forward/common/expert_samples.h"
#include "engine/forward/common/workspace.h"
#include "fetch/chunk_decoder.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {
namespace {

// Works chunk by chunk or tensor by tensor over all samples, on all threads; returns seconds of one operation
// on one thread.
double on_all_threads(const MeasureTools& tools, std::size_t count,
                      const std::function<void(std::size_t)>& one) {
  const double wall = seconds_of([&] { tools.pool.parallel_for(count, one); });
  return wall * std::min<double>(tools.pool.threads(), static_cast<double>(count)) /
         static_cast<double>(count);
}

struct ChunkAt {
  const ExpertSample* sample;
  const fetch::PiecePlace* piece;
  const codec::PlaneChunk* chunk;
};

// One sample of each cost that has to do with reading and decoding experts, per repeat.
struct ReadTimes {
  std::vector<double> u, v, c, merge, latency;
};

void measure_reads(const MeasureTools& tools, const ExpertSamples& samples, ReadTimes& times) {
  std::vector<ChunkAt> chunks;
  std::size_t tensors = 0;
  for (const ExpertSample& sample : samples.all()) {
    tensors += sample.layout->pieces.size();
    for (const fetch::PiecePlace& piece : sample.layout->pieces)
      for (const codec::PlaneChunk& chunk : piece.chunks) chunks.push_back({&sample, &piece, &chunk});
  }
  const auto each = static_cast<double>(tensors), count = static_cast<double>(chunks.size());
  times.u.push_back(seconds_of([&] { samples.read(SampleRead::kBase); }) / each);
  if (!chunks.empty()) {
    const fetch::ChunkDecoder decoder(tools.files, tools.kernels.isa, tools.checkpoint.codec());
    times.v.push_back(seconds_of([&] { samples.read(SampleRead::kRest); }) / count);
    times.c.push_back(on_all_threads(tools, chunks.size(), [&](std::size_t i) {
      const ChunkAt& one = chunks[i];
      decoder.decode(*one.piece, *one.chunk, one.sample->rest.data(), one.sample->view.data());
    }));
    times.merge.push_back(on_all_threads(tools, chunks.size(),
                                         [&](std::size_t i) {
                                           const ChunkAt& one = chunks[i];
                                           decoder.merge(*one.piece, *one.chunk, one.sample->base.data(),
                                                         one.sample->rest.data(), one.sample->view.data());
                                         }) *
                          count / each);
  }
  samples.copy_whole_pieces();
  // One expert by itself, and what is left of that without its share of the reads above.
  const double alone = seconds_of([&] { samples.read(SampleRead::kBoth, 1); });
  const auto pieces = static_cast<double>(samples.all()[0].layout->pieces.size());
  const double share =
      pieces * times.u.back() +
      (chunks.empty() ? 0 : times.v.back() * count / static_cast<double>(samples.all().size()));
  times.latency.push_back(std::max(0.0, alone - share));
}

double compute_seconds(const MeasureTools& tools, const ExpertSamples& samples, std::size_t tokens,
                       bool from_planes) {
  return seconds_of([&] {
           for (const ExpertSample& sample : samples.all())
             compute_sample(tools, samples.place(sample, from_planes), tokens);
         }) /
         static_cast<double>(samples.all().size());
}

}  // namespace

std::vector<std::uint32_t> measured_token_counts(const MeasureTools& tools) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t tokens = 1; tokens <= std::min<std::size_t>(16, tools.workspace.shape().tokens);
       tokens *= 2)
    counts.push_back(tokens);
  return counts;
}

Profile measure_profile(const MeasureTools& tools, const ProfiledMachine& machine,
                        const MeasureOptions& options) {
  SLUICE_CHECK(options.repeats >= 1);
  Profile profile;
  profile.machine = machine;
  profile.model = profiled_model(tools.checkpoint, tools.model, tools.experts);
  std::vector<double> rest;
  for (std::size_t i = 0; i < options.repeats; ++i) {
    stop_if(options.stop);
    rest.push_back(seconds_of(tools.decode_step_without_experts));
  }
  profile.rest = measured(rest);
  if (tools.model.experts.empty() || tools.experts.facts().sliced) return profile;

  std::mt19937_64 random(options.seed);
  ReadTimes reads;
  std::vector<double> p_packed;
  const std::vector<std::uint32_t> token_counts = measured_token_counts(tools);
  std::vector<std::vector<double>> p(token_counts.size());
  ExpertSamples samples(tools, options.sample_bytes);
  for (std::size_t repeat = 0; repeat < options.repeats; ++repeat) {
    stop_if(options.stop);
    samples.choose(random);
    measure_reads(tools, samples, reads);
    for (std::size_t i = 0; i < token_counts.size(); ++i) {
      const std::size_t tokens = token_counts[i];
      fill_sample_inputs(tools, tokens);
      p[i].push_back(compute_seconds(tools, samples, tokens, false));
      if (tokens == 1 && tools.experts.facts().can_be_packed)
        p_packed.push_back(compute_seconds(tools, samples, tokens, true));
    }
  }
  profile.u = measured(reads.u);
  profile.latency = measured(reads.latency);
  if (!reads.c.empty()) {
    profile.v = measured(reads.v);
    profile.c = measured(reads.c);
    profile.merge = measured(reads.merge);
  }
  for (std::size_t i = 0; i < token_counts.size(); ++i)
    profile.p_of_tokens.emplace_back(token_counts[i], measured(p[i]));
  profile.p = profile.p_of_tokens.front().second;
  if (!p_packed.empty()) profile.p_packed = measured(p_packed);
  return profile;
}

}  // namespace sluice::engine
