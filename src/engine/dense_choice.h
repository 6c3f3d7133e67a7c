// Whether dense matrices are kept as words or as a store has them, decided once, before anything is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "engine/dense_weights.h"
#include "engine/profile.h"

namespace sluice::engine {

// What both ways would be like, of one model under one budget.
struct DenseQuestion {
  Bytes either_way = 0;         // words of the matrices in question; 0: there is none
  Bytes words = 0, packed = 0;  // memory that all dense weights take
  bool words_fit = true;        // in the budget
  bool fast_packed = true;      // the instruction set multiplies packed weights without making words first
  std::uint64_t experts_beside_words = 0, experts_beside_packed = 0;  // that the caches have room for
};

struct DenseChoice {
  DenseView view = DenseView::kWords;
  std::string why;
};

// The view that was asked for. Error(kUsage) for kPacked where `either_way` is 0: of a model at `path`,
// stored with `codec`, no matrix can be kept so. With every instruction set the rest can.
DenseChoice asked_dense_view(DenseView view, Bytes either_way, const std::string& path,
                             const std::string& codec);

// Packed, for its memory, where products with packed weights have kernels of their own, unless a profile says
// that products with packed weights take longer than words by more than the experts that fit instead would
// save: of a step of one token, in which all experts are equally likely. `profile` may be null.
DenseChoice choose_dense_view(const DenseQuestion& question, const Profile* profile);

}  // namespace sluice::engine
