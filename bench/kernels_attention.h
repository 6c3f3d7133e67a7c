// Benchmarks of attention over one token and a long context.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels_suite.h"

namespace sluice::bench {

// Adds workloads to `suite`, which must outlive it; this object must live until they have run.
class AttentionBench {
 public:
  explicit AttentionBench(Suite& suite) : suite_(suite) {}
  AttentionBench(const AttentionBench&) = delete;
  AttentionBench& operator=(const AttentionBench&) = delete;

  // `context`: positions. `latent`: values are the first dimensions of the keys. The result must equal the
  // scalar path, bit for bit.
  void add(const std::string& name, const kernels::AttentionShape& shape, std::size_t context, bool latent);

 private:
  Suite& suite_;
  Aligned<float> y_, scratch_;
};

}  // namespace sluice::bench
