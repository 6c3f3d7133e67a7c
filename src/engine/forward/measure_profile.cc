#include "engine/forward/measure_profile.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <span>

#include "base/error.h"
#include "device/host_buffer.h"
#include "engine/forward/moe_block.h"
#include "fetch/chunk_decoder.h"
#include "fetch/expert_view.h"
#include "kernels/products/input_form.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;
using fetch::ExpertLayout;
using fetch::PiecePlace;
using fetch::ReadRegion;

double seconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Buffers for one expert.
struct Sample {
  const ExpertLayout* layout = nullptr;
  device::HostBuffer base, rest, view;
  std::byte* view_data() const { return layout->merged() ? view.data() : base.data(); }
};

const ExpertLayout& layout_of(const MeasureTools& tools, const model::ExpertPieces& pieces) {
  return tools.experts.layout(
      {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)});
}

enum class Read { kBase, kRest, kBoth };

// Reads these regions of every sample, all reads in flight.
void read_all(const MeasureTools& tools, std::span<const Sample> samples, Read what) {
  std::vector<const fetch::FileRun*> runs;
  const auto submit = [&](const ReadRegion& region, const device::HostBuffer& buffer) {
    for (const fetch::FileRun& run : region.runs) {
      tools.files.submit(run, buffer.data(), runs.size());
      runs.push_back(&run);
    }
  };
  for (const Sample& sample : samples) {
    if (what != Read::kRest) submit(sample.layout->base, sample.base);
    if (what != Read::kBase) submit(sample.layout->rest, sample.rest);
  }
  std::vector<DiskCompletion> done;
  try {
    while (done.size() < runs.size()) tools.files.reader().wait(1, done);
    for (const DiskCompletion& completion : done) tools.files.check(*runs[completion.tag], completion);
  } catch (...) {
    tools.files.drain();
    throw;
  }
}

// Buffers for as many experts as may be read at a time, each large enough for any expert.
std::vector<Sample> take_samples(const MeasureTools& tools, const MeasureOptions& options) {
  ExpertLayout largest;
  for (const model::ExpertPieces& pieces : tools.model.experts) {
    const ExpertLayout& layout = layout_of(tools, pieces);
    largest.base.bytes = std::max(largest.base.bytes, layout.base.bytes);
    largest.rest.bytes = std::max(largest.rest.bytes, layout.rest.bytes);
    if (layout.merged()) largest.view_bytes = std::max(largest.view_bytes, layout.view_bytes);
  }
  const Bytes most = std::min(options.sample_bytes, tools.accountant.available() / 2);
  const Bytes each = largest.base.bytes + largest.rest.bytes + largest.view_bytes;
  const std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(most / std::max<Bytes>(1, each)),
                                                    1, tools.model.experts.size());
  const auto take = [&](Bytes bytes) {
    device::HostBuffer buffer(tools.accountant, device::Account::kStaging, bytes);
    // Keeps the first touch of a page out of the measurement
    if (bytes > 0) std::memset(buffer.data(), 0, bytes);
    return buffer;
  };
  std::vector<Sample> samples(count);
  for (Sample& sample : samples) {
    sample.base = take(largest.base.bytes);
    sample.rest = take(largest.rest.bytes);
    sample.view = take(largest.view_bytes);
  }
  return samples;
}

// Works chunk by chunk or tensor by tensor over all samples, on all threads; returns seconds of one operation
// on one thread.
double on_all_threads(const MeasureTools& tools, std::size_t count,
                      const std::function<void(std::size_t)>& one) {
  const double wall = seconds([&] { tools.pool.parallel_for(count, one); });
  return wall * std::min<double>(tools.pool.threads(), static_cast<double>(count)) /
         static_cast<double>(count);
}

// Computes the expert of a sample for `tokens` tokens, from words or from its planes.
void compute_expert(const MeasureTools& tools, const Sample& sample, std::size_t tokens, bool from_planes) {
  const model::ModelConfig& config = tools.model.config;
  const Workspace& w = tools.workspace.get();
  const fetch::ExpertView view = fetch::expert_view(
      *sample.layout, config.moe.width, config.hidden,
      {from_planes ? nullptr : sample.view_data(), sample.base.data(), sample.rest.data()});
  Mlp mlp{.gate = view.gate, .up = view.up, .down = view.down, .out = w.expert_rows};
  std::ranges::copy(w.arranged, mlp.inputs.begin());
  compute(tools.kernels, mlp, tokens, w);
}

// Gives the workspace some input in the forms that experts read.
void fill_inputs(const MeasureTools& tools, std::size_t tokens) {
  kernels::input_forms_of(tools.experts.formats()).each([&](codec::InputForm form) {
    std::fill_n(tools.workspace.get().arranged[static_cast<std::size_t>(form)],
                tokens * kernels::input_form(form).floats(tools.model.config.hidden), 0.01f);
  });
}

}  // namespace

Profile measure_profile(const MeasureTools& tools, const ProfiledMachine& machine,
                        const MeasureOptions& options) {
  SLUICE_CHECK(options.repeats >= 1);
  Profile profile;
  profile.machine = machine;
  profile.model = profiled_model(tools.checkpoint, tools.model, tools.experts);
  std::vector<double> rest;
  for (std::size_t i = 0; i < options.repeats; ++i) {
    stop_if(options.stop);
    rest.push_back(seconds(tools.decode_step_without_experts));
  }
  profile.rest = measured(rest);
  if (tools.model.experts.empty()) return profile;

  const fetch::ChunkDecoder decoder(tools.files, tools.kernels.isa, tools.checkpoint.codec());
  std::mt19937_64 random(options.seed);
  struct ChunkAt {
    const Sample* sample;
    const PiecePlace* piece;
    const codec::PlaneChunk* chunk;
  };
  std::vector<double> u, v, c, merge, p_packed, latency;
  std::vector<std::uint32_t> token_counts;
  for (std::uint32_t tokens = 1; tokens <= std::min<std::size_t>(16, tools.workspace.shape().tokens);
       tokens *= 2)
    token_counts.push_back(tokens);
  std::vector<std::vector<double>> p(token_counts.size());

  std::vector<Sample> samples = take_samples(tools, options);
  for (std::size_t repeat = 0; repeat < options.repeats; ++repeat) {
    stop_if(options.stop);
    for (Sample& sample : samples)
      sample.layout = &layout_of(tools, tools.model.experts[random() % tools.model.experts.size()]);
    std::vector<ChunkAt> chunks;
    std::size_t tensors = 0;
    for (const Sample& sample : samples) {
      tensors += sample.layout->pieces.size();
      for (const PiecePlace& piece : sample.layout->pieces)
        for (const codec::PlaneChunk& chunk : piece.chunks) chunks.push_back({&sample, &piece, &chunk});
    }
    u.push_back(seconds([&] { read_all(tools, samples, Read::kBase); }) / static_cast<double>(tensors));
    if (!chunks.empty()) {
      v.push_back(seconds([&] { read_all(tools, samples, Read::kRest); }) /
                  static_cast<double>(chunks.size()));
      c.push_back(on_all_threads(tools, chunks.size(), [&](std::size_t i) {
        decoder.decode(*chunks[i].piece, *chunks[i].chunk, chunks[i].sample->rest.data(),
                       chunks[i].sample->view.data());
      }));
      merge.push_back(on_all_threads(tools, chunks.size(),
                                     [&](std::size_t i) {
                                       decoder.merge(
                                           *chunks[i].piece, *chunks[i].chunk, chunks[i].sample->base.data(),
                                           chunks[i].sample->rest.data(), chunks[i].sample->view.data());
                                     }) *
                      static_cast<double>(chunks.size()) / static_cast<double>(tensors));
      for (const Sample& sample : samples)  // in mixed experts: pieces that are stored whole
        for (const PiecePlace& piece : sample.layout->pieces)
          if (!piece.coded()) fetch::ChunkDecoder::copy(piece, sample.base.data(), sample.view.data());
    }
    // One expert by itself, and what is left of that without its share of the reads above.
    const std::span<const Sample> one(samples.data(), 1);
    const double alone = seconds([&] { read_all(tools, one, Read::kBoth); });
    const double pieces = static_cast<double>(one[0].layout->pieces.size());
    const double share = pieces * u.back() + (chunks.empty() ? 0
                                                             : v.back() * static_cast<double>(chunks.size()) /
                                                                   static_cast<double>(samples.size()));
    latency.push_back(std::max(0.0, alone - share));
    for (std::size_t i = 0; i < token_counts.size(); ++i) {
      const std::size_t tokens = token_counts[i];
      fill_inputs(tools, tokens);
      const auto wall = [&](bool packed) {
        return seconds([&] {
                 for (const Sample& sample : samples) compute_expert(tools, sample, tokens, packed);
               }) /
               static_cast<double>(samples.size());
      };
      p[i].push_back(wall(false));
      if (tokens == 1 && tools.experts.can_be_packed()) p_packed.push_back(wall(true));
    }
  }
  profile.u = measured(u);
  profile.latency = measured(latency);
  if (!c.empty()) {
    profile.v = measured(v);
    profile.c = measured(c);
    profile.merge = measured(merge);
  }
  for (std::size_t i = 0; i < token_counts.size(); ++i)
    profile.p_of_tokens.emplace_back(token_counts[i], measured(p[i]));
  profile.p = profile.p_of_tokens.front().second;
  if (!p_packed.empty()) profile.p_packed = measured(p_packed);
  return profile;
}

}  // namespace sluice::engine
