// Codes one slice of a pack between reading and writing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/files/file.h"
#include "codec/exponents/exponent_codec.h"
#include "store/pack/pack_job.h"
#include "store/pack/pack_quantised.h"
#include "store/pack/pack_slices.h"
#include "store/pack/unit_writer.h"
#include "store/piece_encoding.h"

namespace sluice::store {

// One slice on its way through the pipeline.
struct CodedSlice : SliceRange {
  std::unique_ptr<std::byte[]> words;  // as read, unless the slice is split; freed after rounding
  std::unique_ptr<std::byte[]> sm, exponents;
  QuantisedStrips strips;
  codec::EncodedChunk chunk;
  std::uint64_t chunk_xxh3 = 0;

  bool is_split() const { return encoding_of(encoding).runs == Runs::kExponents; }
  bool is_quantised() const { return encoding_of(encoding).rounded; }
  // The most memory that it takes at any moment.
  Bytes memory() const;
};

// Reads the words of the slice from its file: those of a split slice a few MiB at a time, as its planes.
// Error as InputFile::read_at(); (kInterrupted) if `stop` says so.
void load_slice(const PackJob& job, CodedSlice& slice, const InputFile& file, const StopRequest& stop);
// Turns what was read into the bytes to write. Thread-safe. Error(kInvalid) naming a weight that cannot be
// rounded.
void code_slice(const PackJob& job, CodedSlice& slice, const StopRequest& stop);

// Hand the shapes of a unit's pieces, and a coded slice of one of them, to the writer.
void begin_unit(const PackJob& job, const PackUnit& unit, UnitWriter& writer);
void put_slice(const PackJob& job, const CodedSlice& slice, UnitWriter& writer);

}  // namespace sluice::store
