#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/piece_check.h"
#include "store/piece_encoding.h"
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
    for (const PieceEntry& piece : m_.pieces) check_piece({m_, piece, name_});
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
    const bool gguf = m_.first_gguf() != nullptr;
    for (std::size_t i = 0; i < m_.sources.size(); ++i) {
      const StoredSource& source = m_.sources[i];
      if (!is_safe_relative_path(source.path))
        throw error("illegal path of a source file").found(fmt::format("\"{}\"", source.path));
      if (i > 0 && m_.sources[i - 1].path >= source.path)
        throw error("source files are not in order").found(source.path);
      if (!source.weights) continue;
      if (source.header.offset != headers || source.header.length > source.size ||
          source.header.length > kMaxRestBytes) {
        throw error(fmt::format("illegal header extent of \"{}\"", source.path))
            .found(fmt::format("[{}, {}]", source.header.offset, source.header.length));
      }
      headers += source.header.length;
      if (source.gguf != gguf) throw error("weight files are of two kinds").found(source.path);
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
    // In a safetensors file back to back from the end of the header to the end of the file; in a GGUF file
    // ascending, and what is between them has the size of its extent in headers.bin (section 2.1).
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(m_.places[a].source, m_.places[a].offset, bytes_[a]) <
             std::tie(m_.places[b].source, m_.places[b].offset, bytes_[b]);
    });
    std::size_t next = 0;
    for (std::size_t s = 0; s < m_.sources.size(); ++s) {
      const StoredSource& source = m_.sources[s];
      if (!source.weights) continue;
      Bytes at = source.gguf ? 0 : source.header.length, covered = source.header.length;
      for (; next < order.size() && m_.places[order[next]].source == s; ++next) {
        const Bytes offset = m_.places[order[next]].offset, length = bytes_[order[next]];
        const bool fits = source.gguf ? offset >= at && offset <= source.size : offset == at;
        if (!fits || length > source.size - offset) {
          throw error(fmt::format("tensor \"{}\" is not where it belongs in {}", m_.tensors[order[next]].name,
                                  source.path))
              .expected(fmt::format("offset {}{}", at, source.gguf ? " or more" : ""))
              .found(fmt::format("{}", offset));
        }
        at = offset + length;
        covered += length;
      }
      if (covered != source.size)
        throw error(fmt::format("the tensors do not fill {}", source.path))
            .expected(fmt::format("{} bytes", source.size))
            .found(fmt::format("{}", covered));
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

  std::string text(const PieceEntry& piece) const { return PieceCheck{m_, piece, name_}.text(); }

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
      each_source_range(m_, piece, [&](const SourceRange& range) {
        ranges.push_back({range.tensor, range.first, range.count, &piece});
      });
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
      const PieceEncoding& encoding = encoding_of(piece);
      const std::span<const StoredChunk> runs = runs_of(m_, piece);
      const bool aligned = piece.bytes.offset % kRegionAlignment == 0 &&
                           (runs.empty() || runs.front().bytes.offset % kRegionAlignment == 0) &&
                           (encoding.runs != Runs::kPlanes || follow(runs));
      if (!aligned) throw error("a dense piece is not aligned").found(text(piece));
      if (!encoding.in_dense) throw error("a dense piece is sliced").found(text(piece));
    }
  }

  // These stand one behind the other, each at a multiple of 64.
  static bool follow(std::span<const StoredChunk> planes) {
    Bytes at = planes.front().bytes.offset;
    for (const StoredChunk& plane : planes) {
      if (plane.bytes.offset != round_up(at, kPieceAlignment)) return false;
      at = plane.bytes.end();
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

  bool regions_are_sound(const ExpertEntry& expert) const {
    const Bytes size = m_.data_files[expert.file].size;
    std::optional<Bytes> end;
    for (const auto& [name, at] : kExpertRegions) {
      const Region& region = expert.*at;
      if (region.length == 0) continue;
      if (region.offset > size || region.length > size - region.offset ||
          region.offset % kRegionAlignment != 0)
        return false;
      if (end && region.offset != round_up(*end, kRegionAlignment)) return false;
      end = region.end();
    }
    return true;
  }

  // Section 3: the regions in order and aligned, the pieces in their regions.
  bool layout_of(const ExpertEntry& expert) const {
    if (!regions_are_sound(expert)) return false;
    ExpertEntry filled = expert;  // its regions as far as the pieces fill them
    for (const auto& [name, at] : kExpertRegions) (filled.*at).length = 0;
    const auto take = [&](Region ExpertEntry::*region, const Region& bytes, Bytes alignment) {
      Region& so_far = filled.*region;
      if (bytes.offset != round_up(so_far.end(), alignment)) return false;
      so_far.length = bytes.end() - so_far.offset;
      return true;
    };
    for (std::uint32_t i = 0; i < expert.piece_count; ++i) {
      const PieceEntry& piece = m_.pieces[expert.first_piece + i];
      if (piece.count == 0) continue;
      const PieceEncoding& encoding = encoding_of(piece);
      // In family sliced all matrices of an expert are sliced, and none has codes of 8 bits.
      if (m_.slices.has_value() != encoding.rounded || !encoding.in_experts) return false;
      if (encoding.has_bytes() && !take(encoding.region, piece.bytes, kPieceAlignment)) return false;
      const Bytes alignment = encoding.runs == Runs::kExponents ? 1 : kPieceAlignment;
      for (const StoredChunk& run : runs_of(m_, piece))
        if (!take(encoding.runs_region, run.bytes, alignment)) return false;
    }
    return std::ranges::all_of(
        kExpertRegions, [&](const ExpertRegion& one) { return filled.*one.region == expert.*one.region; });
  }

  void check_overlaps() const {
    std::vector<std::pair<std::uint32_t, Region>> regions;
    for (const PieceEntry& piece : m_.pieces) {
      if (piece.bytes.length > 0) regions.emplace_back(piece.file, piece.bytes);
      if (const std::span runs = runs_of(m_, piece); !runs.empty()) {
        const Bytes begin = runs.front().bytes.offset;
        regions.emplace_back(piece.file, Region{begin, runs.back().bytes.end() - begin});
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
  return std::ranges::any_of(pieces, [](const PieceEntry& piece) { return piece.format != nullptr; });
}

const StoredSource* Manifest::first_gguf() const {
  const auto found = std::ranges::find(sources, true, &StoredSource::gguf);
  return found == sources.end() ? nullptr : &*found;
}

std::vector<Region> rest_of(const Manifest& manifest, std::size_t source) {
  std::vector<Region> tensors;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i)
    if (manifest.places[i].source == source)
      tensors.push_back(
          {manifest.places[i].offset, manifest.tensors[i].bytes_of(manifest.tensors[i].elements())});
  std::ranges::sort(tensors, {},
                    [](const Region& tensor) { return std::pair(tensor.offset, tensor.length); });
  std::vector<Region> rest;
  Bytes at = 0;
  const auto add_up_to = [&](Bytes end) {
    if (end > at) rest.push_back({at, end - at});
  };
  for (const Region& tensor : tensors) {
    add_up_to(tensor.offset);
    at = tensor.end();
  }
  add_up_to(manifest.sources[source].size);
  return rest;
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
