// The work of one pack, determined before anything is written: the source, its weights, and the units in
// which they are packed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codec/exponents/exponent_codec.h"
#include "store/manifest.h"
#include "store/pack/pack.h"
#include "store/pack/pack_identity.h"
#include "store/pack/pack_slices.h"
#include "store/pack/pack_units.h"
#include "store/source/source_weights.h"

namespace sluice::store {

// Thread-compatible; constant once made. `options` must outlive it.
struct PackJob {
  // Errors as pack(), for the options, the source and the plan.
  PackJob(const std::string& path, const PackPlan& plan, const PackOptions& options);
  PackJob(const PackJob&) = delete;  // `identity` points into it
  PackJob& operator=(const PackJob&) = delete;

  PieceEntry coding_of(const PackUnit& unit, const UnitPiece& piece) const;
  Bytes unit_bytes(const PackUnit& unit) const;  // bytes in the source
  std::string source_path(std::string_view relative) const {
    return source.directory.path + "/" + std::string(relative);
  }

  const PackOptions& options;
  const std::unique_ptr<const codec::ExponentCodec> codec;  // null: native
  const SourceWeights source;
  const std::vector<PackUnit> units;
  const Coding coding;
  const std::vector<Bytes> file_starts;     // file_positions()
  std::vector<std::size_t> source_of_file;  // source.weights.files[i] → manifest.sources
  Manifest manifest;                        // everything except what depends on the bytes
  PackIdentity identity;
  Bytes source_bytes = 0;  // bytes of all files
};

// Error(kInvalid) if a file of the source has changed since the job was made; names it and `partial`, which
// holds what was made from it.
void check_source_unchanged(const PackJob& job, const std::string& partial);

}  // namespace sluice::store
