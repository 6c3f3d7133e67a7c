#include "fetch/expert_layout.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace sluice::fetch {
namespace {

ReadRegion region_of(const std::vector<store::Extent>& extents) {
  ReadRegion region;
  for (const FileRun& run : join_extents(extents)) {
    // Equal segments: a short rest would cost as much as a long one.
    const Bytes segments = std::max<Bytes>(1, (run.length + kSegmentBytes - 1) / kSegmentBytes);
    const Bytes each = round_up((run.length + segments - 1) / segments, kBlockBytes);
    for (Bytes done = 0; done < run.length; done += each)
      region.runs.push_back(
          {run.file, run.offset + done, std::min(each, run.length - done), run.place + done});
    region.bytes += run.length;
  }
  region.bytes = shared_size(region.bytes);
  return region;
}

// How an expert can be kept in parts if all its pieces are stored as this one is.
const experts::PartRules& rules_of(const store::StoredPiece& piece) {
  using experts::Family;
  return experts::part_rules(piece.format->slices ? Family::kSliced
                             : piece.coded()      ? Family::kSplit
                                                  : Family::kRaw);
}

}  // namespace

Bytes shared_size(Bytes bytes) {
  const Bytes step = std::max(kBlockBytes, std::bit_floor(bytes) / 64);
  return round_up(bytes, step);
}

Bytes ReadRegion::disk_bytes() const {
  Bytes sum = 0;
  for (const FileRun& run : runs) sum += run.length;
  return sum;
}

ReadRegion::Range ReadRegion::covering(Bytes place, Bytes length) const {
  const auto after = [](Bytes at, const FileRun& run) { return at < run.place + run.length; };
  const auto first = std::upper_bound(runs.begin(), runs.end(), place, after);
  const auto last = length == 0 ? first : std::upper_bound(first, runs.end(), place + length - 1, after) + 1;
  return {static_cast<std::uint32_t>(first - runs.begin()), static_cast<std::uint32_t>(last - runs.begin())};
}

ExpertLayout lay_out_expert(std::span<const store::StoredPiece> pieces) {
  ExpertLayout layout;
  std::vector<store::Extent> base, rest;
  for (const store::StoredPiece& piece : pieces) {
    SLUICE_CHECK(piece.format != nullptr, std::string(dtype_name(piece.dtype)));
    const experts::PartRules& rules = rules_of(piece);
    SLUICE_CHECK(&piece == pieces.data() || rules.named_parts == layout.rules->named_parts,
                 "an expert that is sliced in part");
    if (&piece == pieces.data() || !layout.merged()) layout.rules = &rules;
    for (const auto& [region, extents] :
         {std::pair{codec::PlaneRegion::kBase, &base}, std::pair{codec::PlaneRegion::kRest, &rest}}) {
      const std::vector<store::Extent> own = extents_of(piece, region);
      extents->insert(extents->end(), own.begin(), own.end());
    }
  }
  layout.base = region_of(base);
  layout.rest = region_of(rest);

  for (const store::StoredPiece& piece : pieces)
    layout.pieces.push_back(place_piece(piece, layout.base.runs, layout.rest.runs,
                                        layout.merged() ? &layout.view_bytes : nullptr));
  if (layout.merged()) layout.view_bytes = shared_size(layout.view_bytes);
  if (layout.rules->words == experts::WordSource::kStored) layout.view_bytes = layout.base.bytes;
  return layout;
}

}  // namespace sluice::fetch
