#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "codec/exponents/plane_decoder.h"
#include "codec/slices/int8_matrix.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/source/source_directory.h"

namespace sluice::store {
namespace {

class ManifestCheck {
 public:
  ManifestCheck(const Manifest& manifest, const std::string& name) : m_(manifest), name_(name) {}

  void run() {
    check_sources();
    check_tensors();
    check_data_files();
    for (std::size_t i = 0; i < m_.pieces.size(); ++i) check_piece(m_.pieces[i]);
    check_cover();
    check_dense();
    check_experts();
    check_overlaps();
  }

 private:
  Error error(std::string_view message) const {
    return Error(ErrorKind::kInvalid, message).in(name_).fix("pack the model again");
  }

  void check_sources() const {
    Bytes headers = 0;
    for (std::size_t i = 0; i < m_.sources.size(); ++i) {
      const StoredSource& source = m_.sources[i];
      if (!is_safe_relative_path(source.path))
        throw error("illegal path of a source file").found(fmt::format("\"{}\"", source.path));
      if (i > 0 && m_.sources[i - 1].path >= source.path)
        throw error("source files are not in order").found(source.path);
      if (!source.weights) continue;
      if (source.header.offset != headers || source.header.length > source.size ||
          source.header.length > 2 * kGiB) {
        throw error(fmt::format("illegal header extent of \"{}\"", source.path))
            .found(fmt::format("[{}, {}]", source.header.offset, source.header.length));
      }
      headers += source.header.length;
    }
    for (std::size_t i = 0; i < m_.empty_directories.size(); ++i) {
      const std::string& path = m_.empty_directories[i];
      if (!is_safe_relative_path(path))
        throw error("illegal path of a directory").found(fmt::format("\"{}\"", path));
      if (i > 0 && m_.empty_directories[i - 1] >= path)
        throw error("directories are not in order").found(path);
    }
    check_tree();
  }

  // No path may be both a file (or an empty directory) and a directory on the way to another file.
  void check_tree() const {
    std::vector<std::string> leaves = m_.empty_directories;
    for (const StoredSource& source : m_.sources) leaves.push_back(source.path);
    std::sort(leaves.begin(), leaves.end());
    for (std::size_t i = 1; i < leaves.size(); ++i) {
      if (leaves[i] == leaves[i - 1]) throw error("a path is listed twice").found(leaves[i]);
    }
    for (const std::string& leaf : leaves) {
      for (std::size_t slash = leaf.find('/'); slash != std::string::npos;
           slash = leaf.find('/', slash + 1)) {
        if (std::binary_search(leaves.begin(), leaves.end(), leaf.substr(0, slash))) {
          throw error("a file stands where a directory must be").found(leaf.substr(0, slash));
        }
      }
    }
  }

  void check_tensors() {
    bytes_.reserve(m_.tensors.size());
    elements_.reserve(m_.tensors.size());
    std::vector<std::uint32_t> order(m_.tensors.size());
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t i = 0; i < m_.tensors.size(); ++i) {
      const TensorInfo& info = m_.tensors[i];
      if (i > 0 && m_.tensors[i - 1].name >= info.name)
        throw error("tensors are not in order").found(info.name);
      const std::optional<Bytes> bytes = info.checked_bytes();
      if (!bytes) throw error("the shape of a tensor overflows").found(info.name);
      bytes_.push_back(*bytes);
      elements_.push_back(info.elements());
      const StoredTensor& place = m_.places[i];
      if (place.source >= m_.sources.size() || !m_.sources[place.source].weights)
        throw error("a tensor lies in no weight file").found(info.name);
    }
    // Back to back from the end of the header to the end of the file (section 2.1).
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(m_.places[a].source, m_.places[a].offset, bytes_[a]) <
             std::tie(m_.places[b].source, m_.places[b].offset, bytes_[b]);
    });
    std::size_t next = 0;
    for (std::size_t s = 0; s < m_.sources.size(); ++s) {
      const StoredSource& source = m_.sources[s];
      if (!source.weights) continue;
      Bytes at = source.header.length;
      for (; next < order.size() && m_.places[order[next]].source == s; ++next) {
        if (m_.places[order[next]].offset != at || bytes_[order[next]] > source.size - at) {
          throw error(fmt::format("tensor \"{}\" is not where it belongs in {}", m_.tensors[order[next]].name,
                                  source.path))
              .expected(fmt::format("offset {}", at))
              .found(fmt::format("{}", m_.places[order[next]].offset));
        }
        at += bytes_[order[next]];
      }
      if (at != source.size)
        throw error(fmt::format("the tensors do not fill {}", source.path))
            .expected(fmt::format("{} bytes", source.size))
            .found(fmt::format("{}", at));
    }
  }

  void check_data_files() const {
    if (m_.data_files.empty()) throw error("there are no data files");
    for (std::size_t i = 0; i < m_.data_files.size(); ++i) {
      const DataFile& file = m_.data_files[i];
      const std::string wanted = i == 0 ? std::string(kDenseName) : expert_file_name(i - 1);
      if (file.name != wanted)
        throw error("a data file has a wrong name").expected(wanted).found(fmt::format("\"{}\"", file.name));
      if (file.size % kRegionAlignment != 0 || file.size > std::numeric_limits<Bytes>::max() / 2) {
        throw error(fmt::format("illegal size of {}", file.name))
            .expected("a multiple of 4096")
            .found(fmt::format("{}", file.size));
      }
    }
  }

  bool inside(const Region& region, std::uint32_t file) const {
    const Bytes size = m_.data_files[file].size;
    return region.offset <= size && region.length <= size - region.offset;
  }

  std::string text(const PieceEntry& piece) const {
    return fmt::format("elements [{}, {}] of tensor \"{}\"", piece.first, piece.count,
                       m_.tensors[piece.tensor].name);
  }

  void check_piece(const PieceEntry& piece) const {
    if (piece.tensor >= m_.tensors.size())
      throw error("a piece is of no tensor").found(fmt::format("{}", piece.tensor));
    if (piece.file >= m_.data_files.size())
      throw error("a piece lies in no file").found(fmt::format("{}", piece.file));
    const std::uint64_t elements = elements_[piece.tensor];
    // A matrix in a format may have more elements than the tensor of its codes.
    if (piece.encoding == Encoding::kFormat) return check_planes(piece);
    if (piece.first > elements || piece.count > elements - piece.first)
      throw error("a piece is larger than its tensor").found(text(piece));
    if (!inside(piece.bytes, piece.file)) throw error("a piece lies outside of its file").found(text(piece));
    const DType dtype = m_.tensors[piece.tensor].dtype;
    const bool split = piece.encoding == Encoding::kSplit;
    if (split && (dtype != DType::kBF16 || m_.codec.name == "none"))
      throw error("a piece cannot be split").found(text(piece));
    if (piece.tiled() != (split && m_.codec.name == codec::kNativeCodec))
      throw error("a piece has tiles, or lacks them, against its codec").found(text(piece));
    if (piece.tiled()) check_tiles(piece);
    if (piece.quantised()) check_matrix(piece);
    const Bytes wanted = stored_bytes(piece);
    if (piece.bytes.length != wanted) {
      throw error("a piece has a wrong size")
          .expected(fmt::format("{} bytes for {}", wanted, text(piece)))
          .found(fmt::format("{}", piece.bytes.length));
    }
    if (split) check_chunks(piece);
  }

  // Bytes of the piece's first part: `raw`, `sm`, `msb` or `int8`.
  Bytes stored_bytes(const PieceEntry& piece) const {
    switch (piece.encoding) {
      case Encoding::kRaw:
        return m_.tensors[piece.tensor].bytes_of(piece.count);
      case Encoding::kSplit:
        return piece.plane_bytes();
      case Encoding::kSliced:
        return codec::SlicedShape{piece.matrix(), *m_.slices}.msb_bytes();
      case Encoding::kInt8:
        return codec::Int8Shape{piece.matrix()}.bytes();
      case Encoding::kFormat:
        break;  // it has planes instead
    }
    SLUICE_CHECK(false, std::to_string(static_cast<int>(piece.encoding)));
  }

  // Checks a piece in a format: whole rows of a matrix, and planes of the sizes that the format says.
  void check_planes(const PieceEntry& piece) const {
    const codec::MatrixShape matrix{piece.tiles.rows, piece.tiles.columns};
    const bool whole = piece.count % matrix.columns == 0 && piece.count / matrix.columns == matrix.rows &&
                       piece.count <= (Bytes{1} << 48);
    if (!whole || !piece.format->fits(matrix)) {
      throw error("a matrix does not fit its piece or its format")
          .expected(fmt::format("all elements, in whole blocks of {} by {} if {} has no others",
                                piece.format->block.rows, piece.format->block.columns, piece.format->name))
          .found(fmt::format("{} by {}, {}", matrix.rows, matrix.columns, text(piece)));
    }
    if (m_.family() != Family::kRaw)
      throw error("a piece is in a format in another family").found(text(piece));
    if (piece.chunk_count != piece.format->plane_count()) {
      throw error("a piece has not one extent for each plane")
          .expected(fmt::format("{} of {}", piece.format->plane_count(), piece.format->name))
          .found(fmt::format("{} for {}", piece.chunk_count, text(piece)));
    }
    for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
      const StoredChunk& plane = m_.chunks[piece.first_chunk + i];
      const std::string which = fmt::format("plane \"{}\" of {}", piece.format->planes[i].name, text(piece));
      if (plane.tensor >= m_.tensors.size() || plane.first > elements_[plane.tensor] ||
          plane.count > elements_[plane.tensor] - plane.first)
        throw error("a plane is of no tensor, or larger than its tensor").found(which);
      if (!inside(plane.bytes, piece.file)) throw error("a plane lies outside of its file").found(which);
      const Bytes wanted = piece.format->plane_bytes(matrix, i);
      if (plane.bytes.length != wanted || m_.tensors[plane.tensor].bytes_of(plane.count) != wanted) {
        throw error("a plane has a wrong size")
            .expected(fmt::format("{} bytes for {}", wanted, which))
            .found(fmt::format("{} bytes, {} elements", plane.bytes.length, plane.count));
      }
    }
  }

  // Checks a piece of family sliced: whole rows of a tensor. No product overflows: a tensor's elements do
  // not, and padding turns one element into at most 512.
  void check_matrix(const PieceEntry& piece) const {
    if (!m_.slices) throw error("a piece has slices or codes of 8 bits in another family").found(text(piece));
    const TensorInfo& tensor = m_.tensors[piece.tensor];
    const codec::CellShape matrix = piece.matrix();
    if (!codec::can_be_quantised(tensor.dtype))
      throw error("a piece cannot be quantised").found(std::string(dtype_name(tensor.dtype)));
    if (tensor.shape.empty() || tensor.shape.back() != matrix.columns || piece.first % matrix.columns != 0 ||
        piece.count % matrix.columns != 0 || piece.count / matrix.columns != matrix.rows ||
        piece.count > (Bytes{1} << 48)) {
      throw error("a matrix does not fit its piece")
          .expected("rows of the tensor's last dimension, all its elements")
          .found(fmt::format("{} by {}, {}", matrix.rows, matrix.columns, text(piece)));
    }
    if (piece.encoding != Encoding::kSliced) return;
    const Bytes wanted = codec::SlicedShape{matrix, *m_.slices}.lsb_bytes();
    const Region& lsb = m_.chunks[piece.first_chunk].bytes;
    if (!inside(lsb, piece.file)) throw error("a slice lies outside of its file").found(text(piece));
    if (lsb.length != wanted) {
      throw error("a slice has a wrong size")
          .expected(fmt::format("{} bytes for {}", wanted, text(piece)))
          .found(fmt::format("{}", lsb.length));
    }
  }

  // Whole rows of the tensor's last dimension. Neither product overflows: elements of tensors do not.
  void check_tiles(const PieceEntry& piece) const {
    const codec::TileShape& tiles = piece.tiles;
    if (piece.count % tiles.columns != 0 || piece.count / tiles.columns != tiles.rows ||
        piece.count > (Bytes{1} << 48)) {
      throw error("tiles do not fit their piece")
          .expected("rows and columns of all its elements")
          .found(fmt::format("{} by {}, {}", tiles.rows, tiles.columns, text(piece)));
    }
  }

  void check_chunks(const PieceEntry& piece) const {
    const std::uint64_t unit = piece.tiled() ? piece.tiles.group_places() : 1;
    std::uint64_t covered = 0;
    Bytes end = 0;
    for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
      const StoredChunk& chunk = m_.chunks[piece.first_chunk + i];
      const auto fail = [&](std::string_view message) {
        throw error(fmt::format("chunk {} {}", i, message)).in(name_).found(text(piece));
      };
      if (!inside(chunk.bytes, piece.file)) fail("lies outside of its file");
      if (i > 0 && chunk.bytes.offset != end) fail("does not follow the one before");
      if (chunk.first != covered || chunk.count == 0 || chunk.count > piece.plane_bytes() - covered ||
          chunk.count % unit != 0)
        fail("has the wrong elements");
      if (chunk.coded ? chunk.bytes.length == 0 || chunk.bytes.length >= chunk.count
                      : chunk.bytes.length != chunk.count)
        fail("has a wrong size");
      if (piece.tiled() && chunk.bytes.length % codec::kTileColumns != 0) fail("has a wrong size");
      covered += chunk.count;
      end = chunk.bytes.end();
    }
    if (covered != piece.plane_bytes()) throw error("chunks do not cover their piece").found(text(piece));
  }

  // Every element of every tensor lies in exactly one piece, or in exactly one plane of a piece in a format.
  void check_cover() const {
    struct Range {
      std::uint32_t tensor;
      std::uint64_t first, count;
      const PieceEntry* piece;
      auto key() const { return std::tie(tensor, first, count); }
    };
    std::vector<Range> ranges;
    ranges.reserve(m_.pieces.size());
    for (const PieceEntry& piece : m_.pieces) {
      if (piece.encoding != Encoding::kFormat) {
        ranges.push_back({piece.tensor, piece.first, piece.count, &piece});
        continue;
      }
      for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
        const StoredChunk& plane = m_.chunks[piece.first_chunk + i];
        ranges.push_back({plane.tensor, plane.first, plane.count, &piece});
      }
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.key() < b.key(); });
    std::size_t next = 0;
    for (std::uint32_t t = 0; t < m_.tensors.size(); ++t) {
      std::uint64_t covered = 0;
      for (; next < ranges.size() && ranges[next].tensor == t; ++next) {
        const Range& range = ranges[next];
        if (range.first != covered)
          throw error("pieces of a tensor overlap or leave a hole").found(text(*range.piece));
        covered += range.count;
      }
      if (covered != elements_[t])
        throw error(fmt::format("the pieces do not cover tensor \"{}\"", m_.tensors[t].name));
    }
  }

  void check_dense() const {
    for (std::uint32_t i = 0; i < m_.dense_pieces; ++i) {
      const PieceEntry& piece = m_.pieces[i];
      const bool aligned =
          piece.bytes.offset % kRegionAlignment == 0 &&
          (piece.chunk_count == 0 || m_.chunks[piece.first_chunk].bytes.offset % kRegionAlignment == 0) &&
          (piece.encoding != Encoding::kFormat || planes_follow(piece));
      if (!aligned) throw error("a dense piece is not aligned").found(text(piece));
      if (piece.encoding == Encoding::kSliced) throw error("a dense piece is sliced").found(text(piece));
    }
  }

  // The planes of a piece stand one behind the other, each at a multiple of 64.
  bool planes_follow(const PieceEntry& piece) const {
    Bytes at = m_.chunks[piece.first_chunk].bytes.offset;
    for (std::uint32_t i = 0; i < piece.chunk_count; ++i) {
      const Region& plane = m_.chunks[piece.first_chunk + i].bytes;
      if (plane.offset != round_up(at, kPieceAlignment)) return false;
      at = plane.end();
    }
    return true;
  }

  void check_experts() const {
    for (std::size_t i = 0; i < m_.experts.size(); ++i) {
      const ExpertEntry& expert = m_.experts[i];
      const std::string who = fmt::format("expert {} of layer {}", expert.index, expert.layer);
      if (i > 0) {
        const ExpertEntry& before = m_.experts[i - 1];
        if (std::tie(before.layer, before.index) >= std::tie(expert.layer, expert.index))
          throw error("experts are not in order").found(who);
      }
      if (expert.file == 0 || expert.file >= m_.data_files.size())
        throw error("an expert lies in no expert file").found(who);
      if (layout_of(expert) == false)
        throw error("the regions of an expert are not laid out as they must be").found(who);
    }
  }

  // Section 3: the regions in order and aligned, the pieces in their regions.
  bool layout_of(const ExpertEntry& expert) const {
    std::optional<Bytes> end;
    for (const Region* region : {&expert.full, &expert.sm, &expert.exp, &expert.msb, &expert.lsb}) {
      if (region->length == 0) continue;
      if (!inside(*region, expert.file) || region->offset % kRegionAlignment != 0) return false;
      if (end && region->offset != round_up(*end, kRegionAlignment)) return false;
      end = region->end();
    }
    Bytes full = expert.full.offset, sm = expert.sm.offset, exp = expert.exp.offset, msb = expert.msb.offset,
          lsb = expert.lsb.offset;
    for (std::uint32_t i = 0; i < expert.piece_count; ++i) {
      const PieceEntry& piece = m_.pieces[expert.first_piece + i];
      if (piece.count == 0) continue;
      // In family sliced all matrices of an expert are sliced, and none has codes of 8 bits.
      if (m_.slices.has_value() != (piece.encoding == Encoding::kSliced) || piece.encoding == Encoding::kInt8)
        return false;
      if (piece.encoding == Encoding::kFormat) {
        const StoredChunk* const planes = &m_.chunks[piece.first_chunk];
        if (planes[0].bytes.offset != round_up(full, kPieceAlignment) || !planes_follow(piece)) return false;
        full = planes[piece.chunk_count - 1].bytes.end();
        continue;
      }
      Bytes& at = piece.encoding == Encoding::kSplit ? sm : piece.encoding == Encoding::kSliced ? msb : full;
      if (piece.bytes.offset != round_up(at, kPieceAlignment)) return false;
      at = piece.bytes.end();
      if (piece.encoding == Encoding::kSliced) {
        const Region& slice = m_.chunks[piece.first_chunk].bytes;
        if (slice.offset != round_up(lsb, kPieceAlignment)) return false;
        lsb = slice.end();
        continue;
      }
      for (std::uint32_t c = 0; c < piece.chunk_count; ++c) {
        const StoredChunk& chunk = m_.chunks[piece.first_chunk + c];
        if (chunk.bytes.offset != exp) return false;
        exp = chunk.bytes.end();
      }
    }
    return full == expert.full.end() && sm == expert.sm.end() && exp == expert.exp.end() &&
           msb == expert.msb.end() && lsb == expert.lsb.end();
  }

  void check_overlaps() const {
    std::vector<std::pair<std::uint32_t, Region>> regions;
    for (const PieceEntry& piece : m_.pieces) {
      if (piece.bytes.length > 0) regions.emplace_back(piece.file, piece.bytes);
      if (piece.chunk_count > 0) {
        const Bytes begin = m_.chunks[piece.first_chunk].bytes.offset;
        regions.emplace_back(
            piece.file,
            Region{begin, m_.chunks[piece.first_chunk + piece.chunk_count - 1].bytes.end() - begin});
      }
    }
    std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first, a.second.offset) < std::tie(b.first, b.second.offset);
    });
    for (std::size_t i = 1; i < regions.size(); ++i) {
      if (regions[i].first == regions[i - 1].first &&
          regions[i].second.offset < regions[i - 1].second.end()) {
        throw error("two parts overlap").in(m_.data_files[regions[i].first].name, regions[i].second.offset);
      }
    }
  }

  const Manifest& m_;
  const std::string& name_;
  std::vector<Bytes> bytes_;  // parallel to tensors
  std::vector<std::uint64_t> elements_;
};

}  // namespace

std::string expert_file_name(std::size_t number) { return fmt::format("experts-{:05}.bin", number); }

bool Manifest::has_formats() const {
  return std::ranges::any_of(pieces,
                             [](const PieceEntry& piece) { return piece.encoding == Encoding::kFormat; });
}

Bytes Manifest::headers_bytes() const {
  Bytes bytes = 0;
  for (const StoredSource& source : sources) {
    if (source.weights) bytes += source.header.length;
  }
  return bytes;
}

void check_manifest(const Manifest& manifest, const std::string& name) {
  ManifestCheck(manifest, name).run();
}

}  // namespace sluice::store
