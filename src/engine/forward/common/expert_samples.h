// Some experts of a model in memory, to measure with what reading, decoding and computing costs.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "device/host_buffer.h"
#include "engine/forward/common/measure_profile.h"
#include "fetch/expert_layout.h"
#include "fetch/expert_view.h"

namespace sluice::engine {

double seconds_of(const std::function<void()>& work);

// Buffers for one expert, each large enough for any.
struct ExpertSample {
  const fetch::ExpertLayout* layout = nullptr;
  device::HostBuffer base, rest, view;
  std::byte* view_data() const { return layout->merged() ? view.data() : base.data(); }
};

enum class SampleRead { kBase, kRest, kBoth };

// `tools` must outlive it. Thread-compatible.
class ExpertSamples {
 public:
  // For as many experts as MeasureOptions::sample_bytes hold, at least one. Charged to `staging`.
  // Error(kBudget).
  ExpertSamples(const MeasureTools& tools, Bytes sample_bytes);

  std::span<const ExpertSample> all() const { return samples_; }
  // An expert for each sample, of those that may be, of which there is one; nothing is read.
  void choose(
      std::mt19937_64& random,
      const std::function<bool(std::uint32_t layer)>& may_be = [](const auto&) { return true; });
  // Reads these regions of the samples, all reads in flight. Error(kIo), (kCorrupt).
  void read(SampleRead what, std::size_t count) const;
  void read(SampleRead what) const { read(what, samples_.size()); }
  // Makes the words of each sample that is stored in parts. REQUIRES: both regions are read.
  void decode() const;
  // Copies the pieces that are stored whole, of experts that also have pieces in parts: the share of decode()
  // that decodes nothing.
  void copy_whole_pieces() const;
  // As the engine computes with it (from planes or from words). REQUIRES: read; for words decoded.
  fetch::PlacedExpert place(const ExpertSample& sample, bool from_planes) const;

 private:
  const MeasureTools& tools_;
  std::vector<ExpertSample> samples_;
};

// Gives the workspace some input in the forms that experts read.
void fill_sample_inputs(const MeasureTools& tools, std::size_t tokens);
// Computes the expert for the inputs of the workspace.
void compute_sample(const MeasureTools& tools, const fetch::PlacedExpert& place, std::size_t tokens);

}  // namespace sluice::engine
