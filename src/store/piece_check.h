// Whether one piece of a manifest is stored as its encoding says: sizes, shapes, chunks. Where pieces stand
// beside each other is for check/manifest_check.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/manifest.h"

namespace sluice::store {

// A piece and where it stands; refers to its arguments.
struct PieceCheck {
  const Manifest& manifest;
  const PieceEntry& piece;
  const std::string& name;  // the manifest's, for errors

  const TensorInfo& tensor() const { return manifest.tensors[piece.tensor]; }
  bool in_file(const Region& region) const;  // lies in the piece's file
  std::string text() const;                  // "elements [0, 24] of tensor \"x\""
  Error error(std::string_view message) const;
};

// Error(kInvalid) naming the manifest `at.name`.
void check_piece(const PieceCheck& at);

// PieceEncoding::check: of BF16 words split into planes; of pieces that are rounded; of pieces in a format.
void check_split(const PieceCheck& at);
void check_rounded(const PieceCheck& at);
void check_planes(const PieceCheck& at);

}  // namespace sluice::store
