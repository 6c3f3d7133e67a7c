// Whether dense matrices are kept as words or in their stored form, decided once, before anything is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "engine/forward/dense/dense_weights.h"
#include "engine/plan/profile.h"

namespace sluice::engine {

// Both alternatives for one model under one budget.
struct DenseQuestion {
  Bytes either_way = 0;         // bytes of the matrices in question as words; 0: there are none
  Bytes words = 0, packed = 0;  // memory of all dense weights
  bool words_fit = true;        // within the budget
  bool fast_packed = true;      // the instruction set multiplies packed weights without making words first
  // Experts that the caches have room for.
  std::uint64_t experts_beside_words = 0, experts_beside_packed = 0;
};

struct DenseChoice {
  DenseView view = DenseView::kWords;
  std::string why;
};

// The view that the user asked for. Error(kUsage) for kPacked if `either_way` is 0: then no matrix of the
// model at `path`, stored with `codec`, can be kept packed.
DenseChoice asked_dense_view(DenseView view, Bytes either_way, const std::string& path,
                             const std::string& codec);

// Chooses packed, for its smaller memory, if products with packed weights have kernels of their own.
// Exception: a profile says that these products take longer than products with words by more than the
// additional resident experts would save, in a step of one token in which all experts are equally likely.
// `profile` may be null.
DenseChoice choose_dense_view(const DenseQuestion& question, const Profile* profile);

}  // namespace sluice::engine
