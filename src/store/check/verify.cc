#include "store/check/verify.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/machine/thread_pool.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "codec/exponents/plane_decoder.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/pack/restore.h"
#include "store/piece_encoding.h"
#include "store/sidecar/sidecar.h"
#include "store/source/gguf.h"
#include "store/source/gguf_weights.h"
#include "store/source/safetensors.h"
#include "store/source/source_directory.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

constexpr Bytes kStep = kMiB;
constexpr std::string_view kMissing = "a file of the store is missing", kNoFile = "no such file";

// A range of a file with one checksum. Bytes between two of them are padding.
struct Covered {
  Region bytes;
  std::uint64_t xxh3 = 0;
  const PieceEntry* piece = nullptr;  // for an exponent chunk: its piece
  const StoredChunk* chunk = nullptr;
};

class Verifier {
 public:
  Verifier(const std::string& store, const VerifyOptions& options) : store_(store), options_(options) {}

  VerifyReport run() {
    struct stat info {};
    if (::stat(store_.c_str(), &info) != 0) {
      if (errno == ENOENT)
        throw Error(ErrorKind::kNotFound, "no such store")
            .in(store_)
            .expected("a packed store, NAME.sluice")
            .found("nothing")
            .fix("check the path");
      throw io_error("stat", store_, errno);
    }
    if (!S_ISDIR(info.st_mode))
      throw Error(ErrorKind::kInvalid, "not a packed store")
          .in(store_)
          .expected("a directory")
          .found("a file")
          .fix("name the directory of the store");
    const bool has_manifest = ::access(path(kManifestName).c_str(), F_OK) == 0;
    if (!has_manifest &&
        (::access(path(kJournalName).c_str(), F_OK) == 0 || store_.ends_with(kPartialSuffix)))
      throw not_finished(store_);
    if (!has_manifest && ::access(path(kDenseName).c_str(), F_OK) != 0)
      throw Error(ErrorKind::kInvalid, "not a packed store")
          .in(store_)
          .expected("a directory with " + std::string(kManifestName))
          .found("none")
          .fix("make one: sluice pack MODEL " + Setting::kOutput + " NAME.sluice");
    if (read_manifest()) {
      list_files();
      plan_scans();
      // A sliced store does not hold the source's words.
      const bool full = options_.depth == VerifyDepth::kFull && manifest_.family() != Family::kSliced;
      const Bytes each = thread_bytes();
      if (options_.check_memory)
        options_.check_memory(std::max(each, full ? least_restore_memory(manifest_) : Bytes{0}));
      work(each);
      if (full && report_.ok()) restore();
    }
    report_.bytes = done_;
    std::sort(report_.errors.begin(), report_.errors.end(), [](const VerifyError& a, const VerifyError& b) {
      return std::tie(a.file, a.offset, a.message, a.expected) <
             std::tie(b.file, b.offset, b.message, b.expected);
    });
    return std::move(report_);
  }

 private:
  std::string path(std::string_view file) const { return store_ + "/" + std::string(file); }

  // Any thread.
  void add(VerifyKind kind, std::string_view file, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (++errors_of_[std::string(file)] > kMaxVerifyErrors) return;
    report_.errors.push_back({.kind = kind,
                              .file = std::string(file),
                              .offset = error.offset().value_or(0),
                              .message = with_names(error.message()),
                              .expected = with_names(error.expected_text()),
                              .found = with_names(error.found_text()),
                              .fix = with_names(error.fix_text())});
  }
  void add(std::string_view file, const Error& error) {
    add(error.kind() == ErrorKind::kUnsupported ? VerifyKind::kUnsupported
        : error.kind() == ErrorKind::kIo        ? VerifyKind::kUnread
                                                : VerifyKind::kDamage,
        file, error);
  }
  void add_damage(std::string_view file, Bytes offset, std::string_view message, std::string_view expected,
                  std::string_view found) {
    add(VerifyKind::kDamage, file,
        Error(ErrorKind::kCorrupt, message)
            .in(file, offset)
            .expected(expected)
            .found(found)
            .fix("copy the store again, or pack the model again"));
  }
  void add_foreign(std::string_view file, std::string_view message) {
    add(VerifyKind::kBeside, file, Error(ErrorKind::kInvalid, message).in(file).fix("remove it"));
  }

  // Bytes that are checked at once rather than scanned: progress and report count all that is looked at.
  void count(Bytes bytes) {
    done_ += bytes;
    total_ += bytes;
  }

  bool read_manifest() {
    ++report_.files;
    if (::access(path(kManifestName).c_str(), F_OK) != 0) {
      add_damage(kManifestName, 0, kMissing, "the manifest of the store", kNoFile);
      return false;
    }
    try {
      const std::string text = read_manifest_text(store_);
      count(text.size());
      manifest_ = parse_manifest(text, std::string(kManifestName));
      manifest_checksum_ = stated_checksum(text, std::string(kManifestName));
      decoder_.emplace(manifest_.codec.name, options_.isa);
      return true;
    } catch (const Error& error) {
      add(kManifestName, error);
      return false;
    }
  }

  // Compares the files that exist with the files that must exist, by name and size. Files that pass are
  // scanned.
  void list_files() {
    std::map<std::string, Bytes> expected;
    for (const DataFile& file : manifest_.data_files) expected[file.name] = file.size;
    expected[std::string(kHeadersName)] = manifest_.headers_bytes();
    for (const StoredSource& source : manifest_.sources) {
      if (!source.weights) expected[fmt::format("{}/{}", kFilesDirectory, source.path)] = source.size;
    }
    SourceDirectory there;
    try {
      there = scan_directory(store_, {}, Depth::kTree);
    } catch (const Error& error) {
      add(std::filesystem::path(error.where()).lexically_relative(store_).string(), error);
      return;
    }
    for (const SourceFile& file : there.files) {
      if (file.relative == kManifestName) continue;
      ++report_.files;
      const auto wanted = expected.find(file.relative);
      if (wanted != expected.end()) {
        if (file.size == wanted->second) {
          sound_.insert(sound_.end(), file.relative);
        } else {
          add_damage(file.relative, std::min(file.size, wanted->second),
                     "a file of the store has a wrong size", fmt::format("{} bytes", wanted->second),
                     fmt::format("{} bytes", file.size));
        }
        expected.erase(wanted);
      } else if (is_sidecar(file.relative)) {
        check_sidecar_file(file.relative);
        count(file.size);
      } else {
        add_foreign(file.relative, "a file that does not belong to the store");
      }
    }
    for (const auto& [name, size] : expected)
      add_damage(name, 0, kMissing, fmt::format("{} bytes", size), kNoFile);
    for (const std::string& directory : there.empty_directories) {
      // A missing file inside it is reported already
      const auto inside = expected.lower_bound(directory + "/");
      const bool known = inside != expected.end() && inside->first.starts_with(directory + "/");
      if (directory != kSidecarDirectory && directory != kFilesDirectory && !known) {
        if (is_sidecar(directory))
          add(VerifyKind::kBeside, directory,
              Error(ErrorKind::kInvalid, "a directory has the name of a sidecar")
                  .in(directory)
                  .expected("a file, or nothing")
                  .found("a directory")
                  .fix("remove it"));
        else
          add_foreign(directory, "a directory that does not belong to the store");
      }
    }
  }

  void check_sidecar_file(const std::string& name) {
    try {
      check_sidecar(path(name), name, manifest_checksum_);
    } catch (const Error& error) {
      add(VerifyKind::kBeside, name, error);
    }
  }

  // ---- Scans: one for each file

  struct Scan {
    std::string file;
    Bytes size = 0;
    std::vector<Covered> covered;  // ascending; only for files with checksums of parts
    std::string sha256;            // for the other files
  };

  void plan_scans() {
    std::vector<Scan> data(manifest_.data_files.size());
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i].file = manifest_.data_files[i].name;
      data[i].size = manifest_.data_files[i].size;
    }
    for (const PieceEntry& piece : manifest_.pieces) {
      if (piece.bytes.length > 0)
        data[piece.file].covered.push_back({.bytes = piece.bytes, .xxh3 = piece.xxh3});
      const bool exponents = encoding_of(piece).runs == Runs::kExponents;
      for (const StoredChunk& run : runs_of(manifest_, piece)) {
        data[piece.file].covered.push_back(
            {run.bytes, run.xxh3, exponents ? &piece : nullptr, exponents ? &run : nullptr});
      }
    }
    Scan headers{
        .file = std::string(kHeadersName), .size = manifest_.headers_bytes(), .covered = {}, .sha256 = {}};
    for (const StoredSource& source : manifest_.sources) {
      if (source.weights) {
        headers.covered.push_back({.bytes = source.header, .xxh3 = source.header_xxh3});
      } else {
        data.push_back({.file = fmt::format("{}/{}", kFilesDirectory, source.path),
                        .size = source.size,
                        .covered = {},
                        .sha256 = source.sha256});
      }
    }
    data.push_back(std::move(headers));
    for (Scan& scan : data) {
      if (std::find(sound_.begin(), sound_.end(), scan.file) == sound_.end()) continue;
      std::sort(scan.covered.begin(), scan.covered.end(),
                [](const Covered& a, const Covered& b) { return a.bytes.offset < b.bytes.offset; });
      total_ += scan.size;
      scans_.push_back(std::move(scan));
    }
    // Long files come first, so that the threads end together.
    std::stable_sort(scans_.begin(), scans_.end(),
                     [](const Scan& a, const Scan& b) { return a.size > b.size; });
  }

  // The most that a thread of work() holds: its step of a file, and a chunk as stored; a chunk that is not in
  // groups is decoded beside that.
  Bytes thread_bytes() const {
    Bytes chunk = 0;
    for (const Scan& scan : scans_)
      for (const Covered& covered : scan.covered)
        if (covered.chunk != nullptr)
          chunk = std::max(chunk, covered.bytes.length + (covered.piece->tiled() ? 0 : covered.chunk->count));
    return kStep + chunk;
  }

  void work(Bytes each_thread) {
    const Bytes asked = std::min<Bytes>(options_.threads == 0 ? usable_cpus() : options_.threads,
                                        std::max<std::size_t>(scans_.size(), 1));
    const auto threads = static_cast<unsigned>(std::clamp<Bytes>(options_.memory / each_thread, 1, asked));
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable ended;
    unsigned running = threads;  // protected by mutex
    std::vector<std::jthread> pool;
    for (unsigned i = 0; i < threads; ++i) {
      pool.emplace_back([&] {
        for (std::size_t at = next++; at < scans_.size() && !stop_; at = next++) {
          try {
            scan(scans_[at]);
          } catch (const Error& error) {
            add(scans_[at].file, error);
          }
        }
        const std::lock_guard lock(mutex);
        --running;
        ended.notify_one();
      });
    }
    for (bool done = false; !done;) {
      {
        std::unique_lock lock(mutex);
        done = ended.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; });
      }
      report_progress();
    }
    if (report_.ok()) check_headers();
  }

  // Whatever it throws also ends the worker threads.
  void report_progress() try {
    if (options_.on_progress) options_.on_progress(done_, total_);
    if (options_.interrupted && options_.interrupted())
      throw interrupted_error("the store is not verified").in(store_);
  } catch (...) {
    stop_ = true;
    throw;
  }

  // Runs on the worker threads.
  void scan(const Scan& scan) {
    const InputFile file = InputFile::open(path(scan.file));
    if (!scan.sha256.empty()) {
      Sha256Stream sum;
      read(file, {0, scan.size}, [&](Bytes, std::span<const std::byte> bytes) { sum.update(bytes); });
      const std::string found = sum.hex_digest();
      if (found != scan.sha256 && !stop_)
        add_damage(scan.file, 0, "the checksum of the file is wrong", "SHA-256 " + scan.sha256,
                   "SHA-256 " + found);
      return;
    }
    Bytes at = 0;
    for (const Covered& covered : scan.covered) {
      check_padding(file, scan.file, {at, covered.bytes.offset - at});
      Xxh3Stream sum;
      std::vector<std::byte>& chunk = chunk_buffer();
      chunk.clear();
      if (covered.chunk != nullptr) chunk.reserve(static_cast<std::size_t>(covered.bytes.length));
      read(file, covered.bytes, [&](Bytes, std::span<const std::byte> bytes) {
        sum.update(bytes);
        if (covered.chunk != nullptr) chunk.insert(chunk.end(), bytes.begin(), bytes.end());
      });
      if (stop_) return;
      if (sum.digest() != covered.xxh3) {
        add_damage(scan.file, covered.bytes.offset, "the checksum of a part is wrong",
                   "XXH3 " + hex64(covered.xxh3), "XXH3 " + hex64(sum.digest()));
      } else if (covered.chunk != nullptr) {
        check_encoding(scan.file, covered, chunk);
      }
      at = covered.bytes.end();
    }
    check_padding(file, scan.file, {at, scan.size - at});
  }

  // As large as the largest chunk that the thread has seen: a decoder takes a whole chunk. thread_bytes()
  // counts it.
  static std::vector<std::byte>& chunk_buffer() {
    thread_local std::vector<std::byte> buffer;
    return buffer;
  }

  // A chunk may have the right checksum and still be one that a decoder refuses.
  void check_encoding(const std::string& name, const Covered& covered, std::span<const std::byte> bytes) {
    const StoredChunk& chunk = *covered.chunk;
    codec::TileShape tiles;
    std::uint64_t exponents = chunk.count;
    if (covered.piece->tiled()) {
      tiles = codec::tile_rows(covered.piece->tiles, chunk.first, chunk.count).shape;
      exponents = tiles.rows * tiles.columns;
    }
    try {
      decoder_->check(chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw, bytes, tiles,
                      exponents);
    } catch (Error& error) {
      add(name, error.in(name, chunk.bytes.offset));
    }
  }

  void check_padding(const InputFile& file, const std::string& name, const Region& region) {
    bool found = false;
    read(file, region, [&](Bytes offset, std::span<const std::byte> bytes) {
      const auto odd =
          std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
      if (odd == bytes.end() || found) return;
      found = true;
      add_damage(name, offset + static_cast<Bytes>(odd - bytes.begin()),
                 "a byte that belongs to no part is not zero", "0x00",
                 fmt::format("0x{:02x}", std::to_integer<unsigned>(*odd)));
    });
  }

  template <class Take>
  void read(const InputFile& file, const Region& region, Take&& take) {
    // kStep for each thread, which thread_bytes() counts.
    thread_local const std::unique_ptr<std::byte[]> buffer =
        std::make_unique_for_overwrite<std::byte[]>(kStep);
    for (Bytes at = region.offset; at < region.end() && !stop_;) {
      const std::span<std::byte> bytes(buffer.get(),
                                       static_cast<std::size_t>(std::min(kStep, region.end() - at)));
      file.read_at(at, bytes);
      file.drop_cache(at, bytes.size());
      take(at, bytes);
      at += bytes.size();
      done_ += bytes.size();
    }
  }

  // Checks that the headers describe every tensor as the manifest does.
  void check_headers() {
    try {
      const InputFile file = InputFile::open(path(kHeadersName));
      std::size_t described = 0;
      for (std::size_t s = 0; s < manifest_.sources.size(); ++s) {
        const StoredSource& source = manifest_.sources[s];
        if (!source.weights) continue;
        const std::vector<DescribedTensor> tensors =
            source.gguf ? described_by_gguf(file, source) : described_by_safetensors(file, source);
        described += tensors.size();
        for (const DescribedTensor& tensor : tensors) compare(tensor, s);
      }
      if (described != manifest_.tensors.size()) {
        add_damage(kManifestName, 0, "the manifest lists other tensors than the headers",
                   fmt::format("{} tensors", described), fmt::format("{}", manifest_.tensors.size()));
      }
    } catch (const Error& error) {
      add(kHeadersName, error);
    }
  }

  // A tensor as the header of its file describes it.
  struct DescribedTensor {
    TensorInfo info;
    Bytes offset = 0;
  };

  static std::vector<DescribedTensor> described_by_safetensors(const InputFile& file,
                                                               const StoredSource& source) {
    std::string head(static_cast<std::size_t>(source.header.length), '\0');
    file.read_at(source.header.offset, std::as_writable_bytes(std::span(head.data(), head.size())));
    std::vector<DescribedTensor> tensors;
    for (SafetensorsTensor& tensor : parse_safetensors(head, source.size, source.path).tensors)
      tensors.push_back({std::move(tensor.info), tensor.offset});
    return tensors;
  }

  static std::vector<DescribedTensor> described_by_gguf(const InputFile& file, const StoredSource& source) {
    std::vector<DescribedTensor> tensors;
    for (const GgufTensor& tensor : read_gguf(gguf_head(file, source)).tensors)
      tensors.push_back({stored_tensor(tensor), tensor.offset});
    return tensors;
  }

  void compare(const DescribedTensor& tensor, std::size_t source) {
    const auto at =
        std::lower_bound(manifest_.tensors.begin(), manifest_.tensors.end(), tensor.info.name,
                         [](const TensorInfo& info, const std::string& name) { return info.name < name; });
    const bool same = at != manifest_.tensors.end() && at->name == tensor.info.name &&
                      at->dtype == tensor.info.dtype && at->shape == tensor.info.shape;
    const auto index = static_cast<std::size_t>(at - manifest_.tensors.begin());
    if (same && manifest_.places[index].source == source && manifest_.places[index].offset == tensor.offset)
      return;
    add_damage(
        kManifestName, 0, "the manifest and the headers do not say the same of a tensor",
        fmt::format("tensor \"{}\" as in the header of {}", tensor.info.name, manifest_.sources[source].path),
        same ? "another place in it" : "no such tensor, or another dtype or shape");
  }

  // ---- The source files

  class Sha256Sink final : public RestoreSink {
   public:
    explicit Sha256Sink(Verifier& verifier) : verifier_(verifier) {}
    void begin(const StoredSource&) override { sum_.emplace(); }
    void write(std::span<const std::byte> bytes) override { sum_->update(bytes); }
    void end(const StoredSource& source) override {
      const std::string found = sum_->hex_digest();
      if (found != source.sha256)
        verifier_.add_damage(source.path, 0, "the restored file is not the one that was packed",
                             "SHA-256 " + source.sha256, "SHA-256 " + found);
    }
    void poll() override { verifier_.report_progress(); }

   private:
    Verifier& verifier_;
    std::optional<Sha256Stream> sum_;
  };

  void restore() {
    Sha256Sink sink(*this);
    try {
      restore_weights(store_, manifest_,
                      {.threads = options_.threads, .isa = options_.isa, .memory = options_.memory}, sink);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInterrupted) throw;
      add(std::filesystem::path(error.where()).lexically_relative(store_).string(), error);
    }
  }

  const std::string store_;
  const VerifyOptions& options_;
  Manifest manifest_;
  std::optional<codec::PlaneDecoder> decoder_;  // for the manifest's codec
  std::uint64_t manifest_checksum_ = 0;
  std::vector<std::string> sound_;  // files that exist with their right size
  std::vector<Scan> scans_;
  Bytes total_ = 0;
  std::atomic<Bytes> done_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;  // protects the members below
  VerifyReport report_;
  std::map<std::string, std::size_t> errors_of_;
};

}  // namespace

bool VerifyReport::only(VerifyKind kind) const {
  return !ok() && std::ranges::all_of(errors, [&](const VerifyError& error) { return error.kind == kind; });
}

VerifyReport verify(const std::string& store, const VerifyOptions& options) {
  std::string path = store;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return Verifier(path, options).run();
}

}  // namespace sluice::store
