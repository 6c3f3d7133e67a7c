#include "engine/forward/common/expert_samples.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "engine/forward/common/gating.h"
#include "engine/forward/common/workspace.h"
#include "fetch/chunk_decoder.h"
#include "fetch/memory/expert_store.h"
#include "fetch/weight_files.h"
#include "kernels/products/input_form.h"
#include "model/architecture.h"
#include "store/checkpoint.h"

namespace sluice::engine {

using fetch::ExpertLayout;
using fetch::PiecePlace;

namespace {

const ExpertLayout& layout_of(const MeasureTools& tools, const model::ExpertPieces& pieces) {
  return tools.experts.layout(
      {static_cast<std::uint16_t>(pieces.layer), static_cast<std::uint16_t>(pieces.index)});
}

}  // namespace

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

ExpertSamples::ExpertSamples(const MeasureTools& tools, Bytes sample_bytes) : tools_(tools) {
  ExpertLayout largest;
  for (const model::ExpertPieces& pieces : tools.model.experts) {
    const ExpertLayout& layout = layout_of(tools, pieces);
    largest.base.bytes = std::max(largest.base.bytes, layout.base.bytes);
    largest.rest.bytes = std::max(largest.rest.bytes, layout.rest.bytes);
    if (layout.merged()) largest.view_bytes = std::max(largest.view_bytes, layout.view_bytes);
  }
  const Bytes most = std::min(sample_bytes, tools.accountant.available() / 2);
  const Bytes each = largest.base.bytes + largest.rest.bytes + largest.view_bytes;
  const std::size_t count = std::clamp<std::size_t>(static_cast<std::size_t>(most / std::max<Bytes>(1, each)),
                                                    1, tools.model.experts.size());
  const auto take = [&](Bytes bytes) {
    device::HostBuffer buffer(tools.accountant, device::Account::kStaging, bytes);
    // Keeps the first touch of a page out of the measurement
    if (bytes > 0) std::memset(buffer.data(), 0, bytes);
    return buffer;
  };
  samples_.resize(count);
  for (ExpertSample& sample : samples_) {
    sample.base = take(largest.base.bytes);
    sample.rest = take(largest.rest.bytes);
    sample.view = take(largest.view_bytes);
  }
}

void ExpertSamples::choose(std::mt19937_64& random, const std::function<bool(std::uint32_t layer)>& may_be) {
  for (ExpertSample& sample : samples_) {
    const model::ExpertPieces* pieces = nullptr;
    do {
      pieces = &tools_.model.experts[random() % tools_.model.experts.size()];
    } while (!may_be(static_cast<std::uint32_t>(pieces->layer)));
    sample.layout = &layout_of(tools_, *pieces);
  }
}

void ExpertSamples::read(SampleRead what, std::size_t count) const {
  std::vector<const fetch::FileRun*> runs;
  const auto submit = [&](const fetch::ReadRegion& region, const device::HostBuffer& buffer) {
    for (const fetch::FileRun& run : region.runs) {
      tools_.files.submit(run, buffer.data(), runs.size());
      runs.push_back(&run);
    }
  };
  for (const ExpertSample& sample : std::span(samples_).first(count)) {
    if (what != SampleRead::kRest) submit(sample.layout->base, sample.base);
    if (what != SampleRead::kBase) submit(sample.layout->rest, sample.rest);
  }
  std::vector<DiskCompletion> done;
  try {
    while (done.size() < runs.size()) tools_.files.reader().wait(1, done);
    for (const DiskCompletion& completion : done) tools_.files.check(*runs[completion.tag], completion);
  } catch (...) {
    tools_.files.drain();
    throw;
  }
}

void ExpertSamples::decode() const {
  const fetch::ChunkDecoder decoder(tools_.files, tools_.kernels.isa, tools_.checkpoint.codec());
  for (const ExpertSample& sample : samples_)
    for (const PiecePlace& piece : sample.layout->pieces)
      for (const codec::PlaneChunk& chunk : piece.chunks) {
        decoder.decode(piece, chunk, sample.rest.data(), sample.view.data());
        decoder.merge(piece, chunk, sample.base.data(), sample.rest.data(), sample.view.data());
      }
  copy_whole_pieces();
}

void ExpertSamples::copy_whole_pieces() const {
  for (const ExpertSample& sample : samples_)
    for (const PiecePlace& piece : sample.layout->pieces)
      if (sample.layout->merged() && !piece.coded())
        fetch::ChunkDecoder::copy(piece, sample.base.data(), sample.view.data());
}

fetch::PlacedExpert ExpertSamples::place(const ExpertSample& sample, bool from_planes) const {
  const model::ModelConfig& config = tools_.model.config;
  fetch::PlacedExpert place{
      .layout = sample.layout, .hidden = static_cast<std::uint32_t>(config.hidden), .memory = {}};
  if (!from_planes) {
    place.memory.view = sample.view_data();
    return place;
  }
  place.memory.base = sample.base.data();
  if (sample.layout->rest.bytes > 0) place.memory.rest = sample.rest.data();
  return place;
}

void fill_sample_inputs(const MeasureTools& tools, std::size_t tokens) {
  kernels::input_forms_of(tools.experts.facts().formats).each([&](codec::InputForm form) {
    std::fill_n(tools.workspace.get().host.arranged[static_cast<std::size_t>(form)],
                tokens * kernels::input_form(form).floats(tools.model.config.hidden), 0.01f);
  });
}

void compute_sample(const MeasureTools& tools, const fetch::PlacedExpert& place, std::size_t tokens) {
  const HostWorkspace& w = tools.workspace.get().host;
  const fetch::ExpertView view = place.view();
  kernels::Mlp mlp{.gate = view.gate,
                   .up = view.up,
                   .down = view.down,
                   .out = w.expert_rows,
                   .gating = gating_of(tools.model.config.activation)};
  std::ranges::copy(w.arranged, mlp.inputs.begin());
  kernels::mlp(tools.kernels, mlp, tokens, w.mlp());
}

}  // namespace sluice::engine
