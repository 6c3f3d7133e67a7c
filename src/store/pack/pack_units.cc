#include "store/pack/pack_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

Bytes position_of(const Weights& weights, const std::vector<Bytes>& files, const UnitPiece& piece) {
  Bytes position = ~Bytes{0};
  for (const TensorRange& range : piece.ranges()) {
    const TensorPlace& place = weights.places[range.tensor];
    position = std::min(
        position, files[place.file] + place.offset + weights.tensors[range.tensor].bytes_of(range.first));
  }
  return position;
}

// The elements of a tensor that hold a plane of whole rows of a matrix: `before` bytes of it stand before.
TensorRange plane_range(const TensorInfo& tensor, std::uint32_t index, Bytes before, Bytes length) {
  const Bytes width = tensor.bytes_of(1);
  SLUICE_CHECK(before % width == 0 && length % width == 0, tensor.name);
  return {index, before / width, length / width};
}

// A range of one of the tensors that readers have. Error(kInvalid) for a part of a row of a matrix in blocks.
UnitPiece unit_piece(const SourceWeights& source, std::uint32_t read, std::uint64_t first,
                     std::uint64_t count, const std::string& path) {
  const TensorInfo& tensor = source.tensors.tensors[read];
  const auto& stored = source.tensors.planes[read];
  UnitPiece piece{{stored[0], first, count}};
  if (tensor.format == nullptr || tensor.format->words) return piece;
  const std::uint64_t columns = tensor.shape.back();
  if (first % columns != 0 || count % columns != 0 || count == 0)
    throw Error(ErrorKind::kInvalid, fmt::format("a part of a row of tensor \"{}\"", tensor.name))
        .in(path)
        .expected(fmt::format("rows of {} elements: it is stored as {}", columns, tensor.format->name))
        .found(fmt::format("{} elements from {}", count, first));
  piece.format = tensor.format;
  piece.shape = {count / columns, columns};
  for (std::size_t plane = 0; plane < piece.format->plane_count(); ++plane)
    piece.planes[plane] = plane_range(source.weights.tensors[stored[plane]], stored[plane],
                                      piece.format->plane_bytes({first / columns, columns}, plane),
                                      piece.format->plane_bytes(piece.shape, plane));
  return piece;
}

}  // namespace

std::vector<Bytes> file_positions(const Weights& weights) {
  std::vector<Bytes> starts;
  Bytes position = 0;
  for (const WeightFile& file : weights.files) {
    starts.push_back(position);
    position += file.size;
  }
  return starts;
}

std::vector<PackUnit> make_units(const SourceWeights& source, const PackPlan& plan, const std::string& path) {
  const std::vector<TensorInfo>& tensors = source.tensors.tensors;
  std::vector<PackUnit> units;
  std::vector<TensorRange> taken;  // by experts and ranges, of `tensors`
  const auto add_piece = [&](PackUnit& unit, const Piece& piece) {
    const TensorInfo& tensor = checked_tensor(tensors, piece, path);
    const auto index = static_cast<std::uint32_t>(&tensor - tensors.data());
    unit.pieces.push_back(unit_piece(source, index, piece.first_element, piece.elements, path));
    if (piece.elements > 0) taken.push_back({index, piece.first_element, piece.elements});
  };
  for (const ExpertPlan& expert : plan.experts) {
    PackUnit unit{.is_expert = true, .layer = expert.layer, .index = expert.index};
    for (const Piece& piece : expert.pieces) add_piece(unit, piece);
    if (unit.pieces.empty())
      throw Error(ErrorKind::kInvalid,
                  fmt::format("expert {} of layer {} has no pieces", expert.index, expert.layer))
          .in(path);
    units.push_back(std::move(unit));
  }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> ids;
  ids.reserve(units.size());
  for (const PackUnit& unit : units) ids.emplace_back(unit.layer, unit.index);
  std::sort(ids.begin(), ids.end());
  for (const Piece& range : plan.ranges) {
    if (range.elements == 0)
      throw Error(ErrorKind::kInvalid, fmt::format("an empty range of tensor \"{}\"", range.tensor)).in(path);
    add_piece(units.emplace_back(PackUnit{.is_range = true}), range);
  }
  if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end()) {
    throw Error(ErrorKind::kInvalid,
                fmt::format("expert {} of layer {} is listed twice", twice->second, twice->first))
        .in(path);
  }

  std::sort(taken.begin(), taken.end(), [](const TensorRange& a, const TensorRange& b) {
    return std::tie(a.tensor, a.first) < std::tie(b.tensor, b.first);
  });
  const auto add_dense = [&](std::uint32_t tensor, std::uint64_t first, std::uint64_t count) {
    units.push_back({.pieces = {unit_piece(source, tensor, first, count, path)}});
  };
  std::size_t next = 0;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    const std::uint64_t elements = tensors[t].elements();
    std::uint64_t covered = 0;
    if (elements == 0) {
      const bool planned =
          std::any_of(plan.experts.begin(), plan.experts.end(), [&](const ExpertPlan& expert) {
            return std::any_of(expert.pieces.begin(), expert.pieces.end(),
                               [&](const Piece& p) { return p.tensor == tensors[t].name; });
          });
      if (!planned) add_dense(t, 0, 0);
    }
    for (; next < taken.size() && taken[next].tensor == t; ++next) {
      const TensorRange& piece = taken[next];
      if (piece.first < covered)
        throw Error(ErrorKind::kInvalid,
                    fmt::format("two pieces share elements of tensor \"{}\"", tensors[t].name))
            .in(path);
      if (piece.first > covered) add_dense(t, covered, piece.first - covered);
      covered = piece.first + piece.count;
    }
    if (covered < elements) add_dense(t, covered, elements - covered);
  }

  const std::vector<Bytes> files = file_positions(source.weights);
  for (PackUnit& unit : units) {
    unit.position = ~Bytes{0};
    for (const UnitPiece& piece : unit.pieces)
      unit.position = std::min(unit.position, position_of(source.weights, files, piece));
  }
  std::sort(units.begin(), units.end(), [](const PackUnit& a, const PackUnit& b) {
    const auto key = [](const PackUnit& u) {
      return std::tuple(u.position, u.is_expert, u.layer, u.index, u.pieces.front().tensor);
    };
    return key(a) < key(b);
  });
  return units;
}

std::uint64_t fingerprint(const Weights& weights, const std::vector<PackUnit>& units,
                          const std::string& architecture) {
  std::string text = architecture;
  for (const PackUnit& unit : units) {
    text += unit.is_expert ? fmt::format("\ne {} {}", unit.layer, unit.index) : unit.is_range ? "\nr" : "\nd";
    for (const UnitPiece& piece : unit.pieces) {
      text += fmt::format(" {} {} {}", weights.tensors[piece.tensor].name, piece.first, piece.count);
      if (piece.format != nullptr) text += fmt::format(" {} {}", piece.format->name, piece.shape.columns);
    }
  }
  return xxh3(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace sluice::store
