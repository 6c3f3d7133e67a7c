#include "store/pack/unpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/stop_request.h"
#include "store/format.h"
#include "store/pack/partial_directory.h"
#include "store/pack/restore.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

// Marks an unfinished directory of ours, so that no other directory is taken for one and cleared.
constexpr std::string_view kUnpackMarker = ".sluice-unpack";

// Writes one file after another and compares each with the SHA-256 of the source.
class UnpackSink final : public RestoreSink {
 public:
  UnpackSink(std::string directory, Bytes total, const UnpackOptions& options)
      : directory_(std::move(directory)), total_(total), options_(options) {}

  void begin(const StoredSource& source) override {
    const std::filesystem::path path = std::filesystem::path(directory_) / source.path;
    make_directory(path.parent_path());
    out_ = OutputFile::create(path.string());
    sum_.emplace();
    unsynced_ = 0;
  }
  void write(std::span<const std::byte> bytes) override {
    sum_->update(bytes);
    out_.write(bytes);
    done_ += bytes.size();
    unsynced_ += bytes.size();
    if (unsynced_ >= kSyncBytes) {  // so that the page cache does not fill up with written pages
      out_.sync();
      unsynced_ = 0;
    }
    poll();
  }
  void end(const StoredSource& source) override {
    const std::string found = sum_->hex_digest();
    if (out_.size() != source.size || found != source.sha256) {
      throw Error(ErrorKind::kCorrupt, "the restored file is not the one that was packed")
          .in(source.path)
          .expected(fmt::format("{} bytes, SHA-256 {}", source.size, source.sha256))
          .found(fmt::format("{} bytes, SHA-256 {}", out_.size(), found))
          .fix("copy the store again, or pack the model again");
    }
    out_.close();
  }
  void poll() override {
    if (options_.on_progress) options_.on_progress(done_, total_);
    if (options_.interrupted && options_.interrupted()) {
      throw interrupted_error("nothing is left behind").in(directory_);
    }
  }

  static void make_directory(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw io_error("mkdir", path.string(), error.value());
  }

 private:
  static constexpr Bytes kSyncBytes = 256 * kMiB;
  const std::string directory_;
  const Bytes total_;
  const UnpackOptions& options_;
  OutputFile out_;
  std::optional<Sha256Stream> sum_;
  Bytes done_ = 0, unsynced_ = 0;
};

void copy(const std::string& path, const StoredSource& source, RestoreSink& sink) {
  const InputFile in = InputFile::open(path);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMiB);
  sink.begin(source);
  for (Bytes at = 0; at < source.size;) {
    const std::span<std::byte> bytes(buffer.get(),
                                     static_cast<std::size_t>(std::min<Bytes>(kMiB, source.size - at)));
    in.read_at(at, bytes);
    sink.write(bytes);
    at += bytes.size();
  }
  in.drop_cache(0, source.size);
  sink.end(source);
}

// Syncs all directories below `path`; the files in them are on disk already.
void sync_tree(const std::string& path) {
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_directory(error)) sync_directory(at->path().string());
  }
  if (error) throw io_error("readdir", path, error.value());
}

}  // namespace

UnpackResult unpack(const std::string& store, const std::string& target, const UnpackOptions& options) {
  const Manifest manifest = open_store(store);
  if (manifest.family() == Family::kSliced) {
    throw Error(ErrorKind::kUnsupported, "a store of sliced experts cannot be unpacked: they were rounded")
        .in(store)
        .expected("a store of family raw or split")
        .found(fmt::format("family sliced, {} bits", codec::slice_bits_text(*manifest.slices)))
        .fix("keep the model directory, or download it again");
  }
  check_outside(target, store);
  if (options.check_memory) options.check_memory(least_restore_memory(manifest));
  UnpackResult result;
  for (const StoredSource& source : manifest.sources) {
    result.bytes += source.size;
    ++result.files;
  }
  const auto is_ours = [&](std::string_view name) {
    const auto starts = [&](std::string_view path) { return path.substr(0, path.find('/')) == name; };
    return name == kUnpackMarker ||
           std::any_of(manifest.sources.begin(), manifest.sources.end(),
                       [&](const StoredSource& source) { return starts(source.path); }) ||
           std::any_of(manifest.empty_directories.begin(), manifest.empty_directories.end(), starts);
  };
  PartialDirectory partial(target, is_ours);
  if (!partial.has(kUnpackMarker) && !partial.empty()) {
    throw Error(ErrorKind::kInvalid, "this directory is not an unfinished unpack")
        .in(partial.path())
        .expected(fmt::format("{} beside its files, or no file", kUnpackMarker))
        .found("files without it")
        .fix("remove the directory or choose another name");
  }
  try {
    partial.clear();
    OutputFile::create(partial.file(kUnpackMarker)).close();
    check_room(partial.path(), result.bytes);
    UnpackSink sink(partial.path(), result.bytes, options);
    for (const std::string& directory : manifest.empty_directories)
      UnpackSink::make_directory(partial.file(directory));
    for (const StoredSource& source : manifest.sources) {
      if (!source.weights) copy(store + "/" + std::string(kFilesDirectory) + "/" + source.path, source, sink);
    }
    restore_weights(store, manifest,
                    {.threads = options.threads, .isa = options.isa, .memory = options.memory}, sink);
    sync_tree(partial.path());
    partial.publish(kUnpackMarker);
  } catch (...) {
    try {
      partial.discard();
    } catch (const Error&) {
      // The first error is reported; it names the directory, so that users see what the directory is.
    }
    throw;
  }
  return result;
}

}  // namespace sluice::store
