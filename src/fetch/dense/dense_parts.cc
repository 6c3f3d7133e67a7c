#include "fetch/dense/dense_parts.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "device/host_buffer.h"
#include "fetch/checked_hash.h"
#include "fetch/dense/layout_reads.h"
#include "fetch/dense/piece_groups.h"

namespace sluice::fetch {
namespace {

// A coded tensor is decoded in groups of this many elements: with their words about 5 MiB are staged.
constexpr std::uint64_t kPartElements = 1 << 20;
// A tensor that is stored as it is wanted is read in slices of this many bytes.
constexpr Bytes kPartBytes = kMiB;

// A plane in slices of whole blocks of its file.
class PlaneSlices {
 public:
  explicit PlaneSlices(const store::Extent& extent) : extent_(extent) {}

  std::size_t count() const { return (end() - first() + kPartBytes - 1) / kPartBytes; }
  Bytes most_bytes() const { return std::min(end() - first(), kPartBytes); }
  PieceLayout layout(std::size_t number) const {
    const Bytes begin = first() + number * kPartBytes;
    PieceLayout layout;
    layout.runs = {{extent_.file, begin, std::min(kPartBytes, end() - begin), 0}};
    layout.read_bytes = layout.runs[0].length;
    return layout;
  }
  // What a slice has of the plane, in the buffer that it was read to.
  TensorPart part(std::size_t plane, const PieceLayout& layout, const std::byte* read) const {
    const FileRun& run = layout.runs[0];
    const Bytes from = std::max(run.offset, extent_.offset),
                to = std::min(run.offset + run.length, extent_.offset + extent_.length);
    return {plane, from - extent_.offset, {read + (from - run.offset), to - from}};
  }

 private:
  Bytes first() const { return round_down(extent_.offset, kBlockBytes); }
  Bytes end() const {
    return extent_.length == 0 ? first() : round_up(extent_.offset + extent_.length, kBlockBytes);
  }

  const store::Extent extent_;
};

void load_as_it_is(const store::StoredPiece& piece, WeightFiles& files, device::Accountant& accountant,
                   const std::function<void(const TensorPart&)>& take) {
  for (std::size_t plane = 0; plane < piece.plane_count(); ++plane) {
    const store::StoredPlane& stored = piece.planes[plane];
    const PlaneSlices slices(stored.extent);
    const device::HostBuffer halves(accountant, device::Account::kStaging,
                                    halves_bytes(slices.most_bytes(), slices.count()));
    Xxh3Stream hash;
    read_in_turns(
        files, halves, slices.count(), [&](std::size_t i) { return slices.layout(i); },
        [&](std::size_t, const PieceLayout& layout, const std::byte* read) {
          const TensorPart part = slices.part(plane, layout, read);
          if (stored.xxh3) hash.update(part.bytes);
          take(part);
        });
    if (stored.xxh3 && hash.digest() != *stored.xxh3)
      throw_hash_mismatch(stored.extent.length, *stored.xxh3, hash.digest(), files.path(stored.extent.file),
                          stored.extent.offset);
  }
}

void load_words(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                device::Accountant& accountant, const std::function<void(const TensorPart&)>& take) {
  const codec::MatrixFormat& format = *codec::word_format(piece.dtype);
  const PieceGroups groups(piece, kPartElements);
  const device::HostBuffer words(accountant, device::Account::kStaging,
                                 format.bytes({1, groups.most_words()}));
  groups.read(files, accountant,
              [&](const PieceGroup& group, const PieceLayout& layout, const std::byte* read) {
                decoder.decode(layout, read, words.data());
                const std::uint64_t count = std::min(group.piece.elements, piece.elements - group.first_word);
                take({0, format.bytes({1, group.first_word}), {words.data(), format.bytes({1, count})}});
              });
}

void load_stored(const store::StoredPiece& piece, WeightFiles& files, PieceDecoder& decoder,
                 device::Accountant& accountant, const std::function<void(const TensorPart&)>& take) {
  const PiecePlace whole = lay_out({&piece, 1}).pieces[0];
  PieceGroups(piece, kPartElements)
      .read(files, accountant,
            [&](const PieceGroup& group, const PieceLayout& layout, const std::byte* read) {
              decoder.check(layout, read);
              const PiecePlace& place = layout.pieces[0];
              decoder.check_codes(place, read);
              take({0, group.first_place, {read + place.planes[0].place, place.planes[0].bytes}});
              for (std::size_t i = 0; i < place.chunks.size(); ++i)
                take({1,
                      whole.chunks[group.first_chunk + i].place,
                      {read + place.chunks[i].place, place.chunks[i].bytes}});
            });
}

}  // namespace

bool has_parts(const store::StoredPiece& piece) {
  return piece.format == nullptr || piece.format->check == nullptr;
}

Bytes parts_staging_bytes(const store::StoredPiece& piece, PartForm form) {
  Bytes most = 0;
  if (!piece.coded()) {
    for (std::size_t plane = 0; plane < piece.plane_count(); ++plane) {
      const PlaneSlices slices(piece.planes[plane].extent);
      most = std::max(most, halves_bytes(slices.most_bytes(), slices.count()));
    }
    return most;
  }
  const PieceGroups groups(piece, kPartElements);
  const Bytes words = codec::word_format(piece.dtype)->bytes({1, groups.most_words()});
  return groups.staging_bytes() + (form == PartForm::kWords ? round_up(words, kBlockBytes) : 0);
}

void load_in_parts(const store::StoredPiece& piece, PartForm form, WeightFiles& files, PieceDecoder& decoder,
                   device::Accountant& accountant, const std::function<void(const TensorPart&)>& take) {
  SLUICE_CHECK(has_parts(piece));
  if (!piece.coded()) return load_as_it_is(piece, files, accountant, take);
  if (form == PartForm::kWords) return load_words(piece, files, decoder, accountant, take);
  SLUICE_CHECK(piece.own_columns);
  load_stored(piece, files, decoder, accountant, take);
}

}  // namespace sluice::fetch
