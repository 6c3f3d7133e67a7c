#include "store/source/store_checkpoint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/setting.h"
#include "store/format.h"
#include "store/piece_encoding.h"
#include "store/source/gguf.h"
#include "store/source/mxfp4_pairs.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

std::string joined(const std::string& directory, std::string_view name) {
  return directory + "/" + std::string(name);
}

constexpr std::string_view kRestore = "copy the store again, or pack the model again";

Error missing_file(const std::string& path, const std::string& expected) {
  return Error(ErrorKind::kCorrupt, "a file of the store is missing")
      .in(path)
      .expected(expected)
      .found("nothing")
      .fix(kRestore);
}

void check_size(const std::string& path, Bytes wanted) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      throw missing_file(path, fmt::format("a file of {} bytes", wanted));
    throw io_error("stat", path, errno);
  }
  if (!S_ISREG(info.st_mode))
    throw Error(ErrorKind::kCorrupt, "not a regular file")
        .in(path)
        .expected(fmt::format("a file of {} bytes", wanted))
        .found(S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket")
        .fix(kRestore);
  const Bytes size = static_cast<Bytes>(info.st_size);
  if (size != wanted) {
    throw Error(ErrorKind::kCorrupt, "a file of the store has a wrong size")
        .in(path, std::min(size, wanted))
        .expected(fmt::format("{} bytes", wanted))
        .found(fmt::format("{}", size))
        .fix(kRestore);
  }
}

// Files other than weights that describe a model: configurations, tokenizers.
bool describes_the_model(std::string_view path) {
  return path.ends_with(".json") || path.ends_with(".txt") || path.ends_with(".model") ||
         path.ends_with(".jinja");
}

template <class Sum>
void add_bytes(const InputFile& file, const Region& bytes, Sum& sum) {
  std::vector<std::byte> block(std::min<Bytes>(kMiB, bytes.length));
  for (Bytes at = 0; at < bytes.length;) {
    const Bytes length = std::min<Bytes>(block.size(), bytes.length - at);
    file.read_at(bytes.offset + at, std::span(block).first(length));
    sum.update(std::span(block).first(length));
    at += length;
  }
}

void check_header(const InputFile& file, const StoredSource& source) {
  Xxh3Stream sum;
  add_bytes(file, source.header, sum);
  if (sum.digest() == source.header_xxh3) return;
  throw Error(ErrorKind::kCorrupt, "a file of the store is damaged")
      .in(file.path(), source.header.offset)
      .expected("XXH3 " + hex64(source.header_xxh3))
      .found(hex64(sum.digest()))
      .fix(kRestore);
}

void check_digest(const std::string& path, const std::string& wanted) {
  const InputFile file = InputFile::open(path);
  Sha256Stream sum;
  add_bytes(file, {0, file.size()}, sum);
  const std::string found = sum.hex_digest();
  if (found != wanted)
    throw Error(ErrorKind::kCorrupt, "a file of the store is damaged")
        .in(path)
        .expected("SHA-256 " + wanted)
        .found(found)
        .fix(kRestore);
}

// The shape of a tensor whose pieces are in a format and have `rows` rows together: that of the source, with
// the rows and columns of matrices last.
std::vector<std::uint64_t> shape_in_format(const TensorInfo& tensor, std::uint64_t rows,
                                           std::uint64_t columns) {
  std::vector<std::uint64_t> shape = tensor.shape;
  if (shape.size() == 1 && rows == 1) return {columns};
  shape.resize(std::max<std::size_t>(shape.size(), 2), 1);
  shape.back() = columns;
  std::uint64_t matrices = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) matrices *= shape[i];
  shape[shape.size() - 2] = rows / std::max<std::uint64_t>(matrices, 1);
  return shape;
}

// The tensors of a store as readers have them. Empty where they are those of the manifest.
struct StoreTensors {
  std::vector<TensorInfo> tensors;    // ascending by name
  std::vector<std::uint32_t> stored;  // parallel to tensors: indices into Manifest::tensors
};

// A tensor of the manifest that names matrices in a format, `rows` together, as these numbers.
TensorInfo as_numbers(const TensorInfo& stored, const PieceEntry& piece, std::uint64_t rows) {
  if (piece.format == &codec::kFormatMxfp4Pair && are_mxfp4_codes(stored)) return mxfp4_pair_of(stored);
  return {.name = stored.name,
          .dtype = piece.format->words.value_or(DType::kF32),
          .shape = shape_in_format(stored, rows, piece.tiles.columns),
          .format = piece.format};
}

// With matrices in formats as numbers, whatever their source has. Tensors that only hold further planes of
// such matrices are left out.
StoreTensors tensors_as_numbers(const Manifest& manifest, const std::string& path) {
  if (!manifest.has_formats()) return {};
  std::vector<const PieceEntry*> named(manifest.tensors.size(), nullptr);  // the last piece of that name
  std::vector<std::uint64_t> rows(manifest.tensors.size(), 0);
  std::vector<bool> planes(manifest.tensors.size(), false);
  for (const PieceEntry& piece : manifest.pieces) {
    if (piece.format == nullptr) continue;
    named[piece.tensor] = &piece;
    rows[piece.tensor] += piece.tiles.rows;
    for (const StoredChunk& plane : runs_of(manifest, piece)) planes[plane.tensor] = true;
  }
  std::vector<std::pair<TensorInfo, std::uint32_t>> all;
  for (std::uint32_t i = 0; i < manifest.tensors.size(); ++i) {
    if (planes[i] && named[i] == nullptr) continue;
    const TensorInfo& stored = manifest.tensors[i];
    all.emplace_back(named[i] == nullptr ? stored : as_numbers(stored, *named[i], rows[i]), i);
  }
  std::ranges::stable_sort(all, {}, [](const auto& one) -> const std::string& { return one.first.name; });
  StoreTensors result;
  for (auto& [tensor, stored] : all) {
    if (!result.tensors.empty() && result.tensors.back().name == tensor.name)
      throw Error(ErrorKind::kInvalid, "a tensor is in the store twice: as it is, and in MXFP4")
          .in(path + ": " + tensor.name)
          .fix(kRestore);
    result.tensors.push_back(std::move(tensor));
    result.stored.push_back(stored);
  }
  return result;
}

class StoreCheckpoint final : public Checkpoint {
 public:
  StoreCheckpoint(std::string path, Manifest manifest)
      : path_(std::move(path)), manifest_(std::move(manifest)), read_(tensors_as_numbers(manifest_, path_)) {
    std::string directory = path_;
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    files_directory_ = joined(directory, kFilesDirectory);
    headers_ = joined(directory, kHeadersName);
    for (const DataFile& file : manifest_.data_files) files_.push_back(joined(directory, file.name));
    order_.resize(manifest_.pieces.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  }

  const std::string& path() const override { return path_; }
  bool packed() const override { return true; }
  const std::vector<std::string>& weight_files() const override { return files_; }
  const std::vector<TensorInfo>& tensors() const override {
    return read_.tensors.empty() ? manifest_.tensors : read_.tensors;
  }
  const TensorInfo* find(std::string_view name) const override { return find_tensor(tensors(), name); }
  std::string codec() const override { return manifest_.codec.name; }
  std::optional<codec::SliceBits> slices() const override { return manifest_.slices; }
  std::string files_directory() const override { return files_directory_; }

  StoredPiece locate(const Piece& piece) const override {
    const TensorInfo& tensor = checked_tensor(tensors(), piece, path_);
    const Key wanted{stored_index(tensor), piece.first_element, piece.elements};
    const auto at = std::lower_bound(order_.begin(), order_.end(), wanted,
                                     [&](std::uint32_t a, const Key& k) { return key(a) < k; });
    if (at == order_.end() || key(*at) != wanted) {
      throw Error(
          ErrorKind::kInvalid,
          fmt::format("the store does not have this range of tensor \"{}\" as one piece", piece.tensor))
          .in(path_)
          .expected("a range as it was packed")
          .found(fmt::format("{} elements from {}", piece.elements, piece.first_element))
          .fix("pack the model again with this version of Sluice");
    }
    return stored(manifest_.pieces[*at]);
  }

  std::vector<Piece> pieces_of(std::string_view name) const override {
    const Piece whole = whole_tensor(tensors(), name, path_);
    const std::uint32_t index = stored_index(*find(name));
    std::vector<Piece> pieces;
    for (auto at = std::lower_bound(order_.begin(), order_.end(), Key{index, 0, 0},
                                    [&](std::uint32_t a, const Key&k) { return key(a) < k; });
         at != order_.end() && key(*at).tensor == index; ++at)
      pieces.push_back({whole.tensor, key(*at).first, key(*at).count});
    return pieces;
  }

  std::optional<std::string> find_file(std::string_view relative) const override {
    const auto at = std::lower_bound(
        manifest_.sources.begin(), manifest_.sources.end(), relative,
        [](const StoredSource& source, std::string_view name) { return source.path < name; });
    if (at == manifest_.sources.end() || at->path != relative || at->weights) return std::nullopt;
    std::string path = files_directory_ + "/" + at->path;
    check_digest(path, at->sha256);
    return path;
  }

  std::shared_ptr<const GgufHeader> gguf() const override {
    const StoredSource* const source = manifest_.first_gguf();
    if (source == nullptr) return nullptr;
    const InputFile file = InputFile::open(headers_);
    check_header(file, *source);
    return std::make_shared<const GgufHeader>(read_gguf(gguf_head(file, *source)));
  }

  void check_files() const override {
    for (const StoredSource& source : manifest_.sources)
      if (!source.weights && describes_the_model(source.path))
        check_digest(files_directory_ + "/" + source.path, source.sha256);
  }

 private:
  struct Key {
    std::uint32_t tensor;
    std::uint64_t first, count;
    auto operator<=>(const Key&) const = default;
  };
  std::uint32_t stored_index(const TensorInfo& tensor) const {
    const auto index = static_cast<std::size_t>(&tensor - tensors().data());
    return read_.stored.empty() ? static_cast<std::uint32_t>(index) : read_.stored[index];
  }
  Key key(std::uint32_t piece) const {
    const PieceEntry& entry = manifest_.pieces[piece];
    return {entry.tensor, entry.first, entry.count};
  }

  StoredPiece stored(const PieceEntry& entry) const {
    const TensorInfo& tensor = manifest_.tensors[entry.tensor];
    const StoredMatrix matrix = matrix_of(manifest_, entry);
    StoredPiece piece;
    piece.format = matrix.format;
    piece.dtype = entry.format == nullptr ? tensor.dtype : entry.format->words.value_or(DType::kF32);
    piece.elements = entry.count;
    piece.shape = matrix.shape;
    piece.own_columns = entry.tiled() && !tensor.shape.empty() &&
                        entry.tiles.columns == tensor.shape.back() && entry.first % tensor.shape.back() == 0;
    std::size_t planes = 0;
    const auto add_plane = [&](const Region& bytes, std::uint64_t xxh3) {
      piece.planes[planes++] = {{entry.file, bytes.offset, bytes.length}, xxh3};
    };
    const PieceEncoding& encoding = encoding_of(entry);
    const std::span<const StoredChunk> runs = runs_of(manifest_, entry);
    if (encoding.has_bytes()) add_plane(entry.bytes, entry.xxh3);
    if (encoding.runs != Runs::kExponents) {
      for (const StoredChunk& plane : runs) add_plane(plane.bytes, plane.xxh3);
      return piece;
    }
    piece.exponents.reserve(runs.size());
    for (const StoredChunk& chunk : runs) {
      piece.exponents.push_back({.extent = {entry.file, chunk.bytes.offset, chunk.bytes.length},
                                 .first_element = chunk.first,
                                 .elements = chunk.count,
                                 .coded = chunk.coded,
                                 .xxh3 = chunk.xxh3});
    }
    return piece;
  }

  const std::string path_;
  const Manifest manifest_;
  const StoreTensors read_;
  std::string files_directory_, headers_;
  std::vector<std::string> files_;
  std::vector<std::uint32_t> order_;  // order of pieces, by (tensor, first element)
};

}  // namespace

bool looks_like_store(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  if (name.ends_with(".sluice") || name.ends_with(fmt::format(".sluice{}", kPartialSuffix))) return true;
  std::ifstream manifest(joined(path, kManifestName), std::ios::binary);
  if (!manifest) return false;
  std::string start(kManifestStart.size(), '\0');
  manifest.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kManifestStart ||
         (is_there(joined(path, kDenseName)) && is_there(joined(path, kHeadersName)));
}

Error not_finished(const std::string& path) {
  return Error(ErrorKind::kInvalid, "the store is not finished")
      .in(path)
      .expected("a store with manifest.json")
      .found("the journal of a store that is still being packed")
      .fix("run the pack command again: it goes on where it stopped");
}

GgufHead gguf_head(const InputFile& headers, const StoredSource& source) {
  return {headers, source.header.offset, source.header.length,
          fmt::format("{}, {}", headers.path(), source.path), source.size};
}

void check_not_gguf(const std::string& path) {
  if (!looks_like_gguf(path)) return;
  throw Error(ErrorKind::kUnsupported, "GGUF files are not rounded")
      .in(path)
      .expected("the directory of a model")
      .found("a GGUF file")
      .fix("run the file as it is, or download the model's safetensors");
}

void check_not_packed(const std::string& path) {
  if (!looks_like_store(path)) return;
  bool rounded = false;
  try {
    rounded =
        parse_manifest(read_manifest_text(path), joined(path, kManifestName)).family() == Family::kSliced;
  } catch (const Error&) {
    // unpack decides whether the store can be used at all.
  }
  throw Error(ErrorKind::kInvalid, "this is a packed store")
      .in(path)
      .expected("the directory of a model")
      .found(rounded ? "a store of family sliced" : "a store")
      .fix(rounded ? "give the directory that it was packed from: its experts are rounded, and it cannot be "
                     "unpacked"
                   : "give the directory that it was packed from, or restore that: sluice unpack STORE " +
                         flag(Setting::kOutput) +
                         " "
                         "DIRECTORY");
}

void check_has_manifest(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT)
      throw Error(ErrorKind::kNotFound, "no such store")
          .in(path)
          .expected("a packed store, NAME.sluice")
          .found("nothing")
          .fix("check the path");
    throw io_error("stat", path, errno);
  }
  if (!S_ISDIR(info.st_mode))
    throw Error(ErrorKind::kInvalid, "not a packed store")
        .in(path)
        .expected("a directory")
        .found("a file")
        .fix("name the directory of the store");
  const std::string name = joined(path, kManifestName);
  if (!is_there(name)) {
    if (is_there(joined(path, kJournalName))) throw not_finished(path);
    if (is_there(joined(path, kDenseName)) && is_there(joined(path, kHeadersName)))
      throw missing_file(name, "the list of what is in the store");
    throw Error(ErrorKind::kInvalid, "not a packed store")
        .in(path)
        .expected("a directory with manifest.json")
        .found("none")
        .fix("pack the model first: sluice pack MODEL " + flag(Setting::kOutput) + " NAME.sluice");
  }
}

std::string read_manifest_text(const std::string& path) {
  check_has_manifest(path);
  return read_text_file(joined(path, kManifestName), kMaxManifestBytes);
}

void check_file_sizes(const std::string& path, const Manifest& manifest) {
  for (const DataFile& file : manifest.data_files) check_size(joined(path, file.name), file.size);
  check_size(joined(path, kHeadersName), manifest.headers_bytes());
  for (const StoredSource& source : manifest.sources) {
    if (!source.weights) check_size(joined(path, kFilesDirectory) + "/" + source.path, source.size);
  }
}

Manifest open_store(const std::string& path, std::span<const codec::MatrixFormat* const> more_formats) {
  Manifest manifest = parse_manifest(read_manifest_text(path), joined(path, kManifestName), more_formats);
  check_file_sizes(path, manifest);
  return manifest;
}

std::unique_ptr<Checkpoint> open_store_checkpoint(const std::string& path,
                                                  std::span<const codec::MatrixFormat* const> more_formats) {
  return std::make_unique<StoreCheckpoint>(path, open_store(path, more_formats));
}

}  // namespace sluice::store
