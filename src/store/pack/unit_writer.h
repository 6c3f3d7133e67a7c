// Lays out finished units in the data files of a store that is being packed (docs/store-format.md, section 3)
// and keeps the manifest entries of what it has written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "codec/exponents/exponent_codec.h"
#include "store/manifest.h"
#include "store/pack/data_writer.h"
#include "store/pack/pack_units.h"

namespace sluice::store {

// Not thread-safe. For each unit: begin; put every slice of every piece, in order; end.
class UnitWriter {
 public:
  // `manifest` receives pieces, chunks, experts and data_files. It already has those of an earlier run (in
  // the order in which they were written), and the files are cut to the sizes it states. It must outlive the
  // writer. `dense` are the indices of the dense pieces in it, because the array is in the order of writing.
  UnitWriter(const std::string& directory, Manifest& manifest, std::vector<std::uint32_t> dense,
             Bytes expert_file_bytes);

  // A piece as coding_of() has it, and what of the source is read for it.
  struct Planned {
    PieceEntry entry;
    std::span<const TensorRange> ranges;
  };
  void begin_dense(const Planned& piece);
  void begin_expert(std::uint32_t layer, std::uint32_t index, const std::vector<Planned>& pieces);

  void put_raw(std::size_t piece, Bytes offset_in_piece, std::span<const std::byte> bytes);
  // For a piece in a format.
  void put_plane(std::size_t piece, std::size_t plane, Bytes offset_in_plane,
                 std::span<const std::byte> bytes);
  void put_split(std::size_t piece, std::uint64_t first, std::span<const std::byte> sm,
                 const codec::EncodedChunk& chunk, std::uint64_t chunk_xxh3);
  // The next strips. Scales (and zero points, which codes of 8 bits lack) are kept until end(), because they
  // follow all codes.
  struct QuantisedStrips {
    std::span<const std::byte> codes, scales, zeros, lsb;
  };
  void put_quantised(std::size_t piece, const QuantisedStrips& strips);
  // Writes zeros as padding and enters the unit into the manifest. Returns its journal record.
  std::string end();

  void sync();  // puts everything on disk for which end() has returned
  Bytes bytes_since_sync() const { return unsynced_; }
  // Takes the manifest, which is empty from then on, and gives it the order of the format: dense pieces
  // first, then experts ascending. Ends the writer's work.
  Manifest take_in_order();

 private:
  void begin(std::uint32_t file, std::span<const Planned> pieces);
  void place_parts();
  void write_groups();
  void write_padding();
  DataWriter& writer();
  Bytes& cursor() { return manifest_.data_files[unit_.file].size; }

  const std::string directory_;
  Manifest& manifest_;
  std::vector<std::uint32_t> dense_;  // indices into manifest_.pieces
  const Bytes expert_file_bytes_;
  DataWriter dense_writer_, expert_writer_;
  Bytes unsynced_ = 0;

  // The unit that is being written.
  ExpertEntry unit_;  // also for a dense unit: its file and regions
  bool is_expert_ = false;
  std::vector<PieceEntry> pieces_;
  std::vector<std::vector<StoredChunk>> chunks_;
  std::vector<Xxh3Stream> sums_;
  std::vector<std::vector<Xxh3Stream>> run_sums_;  // sums of runs that begin() has placed
  struct GroupData {
    Bytes codes = 0, lsb = 0;  // written so far
    std::vector<std::byte> scales, zeros;
  };
  std::vector<GroupData> groups_;  // parallel to pieces_, if they are quantised
};

}  // namespace sluice::store
