#include "store/pack.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "codec/bf16_split.h"
#include "codec/exponent_codec.h"
#include "codec/native_chunk.h"
#include "codec/plane_decoder.h"
#include "codec/shards.h"
#include "store/format.h"
#include "store/journal.h"
#include "store/ordered_pipeline.h"
#include "store/pack_identity.h"
#include "store/pack_quantised.h"
#include "store/pack_slices.h"
#include "store/pack_units.h"
#include "store/partial_directory.h"
#include "store/source_directory.h"
#include "store/source_hasher.h"
#include "store/store_checkpoint.h"
#include "store/tensor_list.h"
#include "store/unit_writer.h"
#include "store/weight_files.h"

namespace sluice::store {
namespace {

constexpr Bytes kMaxHashLag = kGiB;  // pages that wait in the page cache for the hasher

using Clock = std::chrono::steady_clock;
using Buffer = std::unique_ptr<std::byte[]>;
Buffer make_buffer(Bytes bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

// One slice on its way through the pipeline.
struct Slice : SliceRange {
  Buffer words;  // as read; gone after work if it is coded
  Buffer sm;
  QuantisedStrips strips;
  codec::EncodedChunk chunk;
  std::uint64_t chunk_xxh3 = 0;

  bool is_split() const { return encoding == Encoding::kSplit; }
  bool is_quantised() const { return encoding == Encoding::kSliced || encoding == Encoding::kInt8; }
};

// An earlier run may have left the file, whole or not.
OutputFile create_afresh(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw io_error("unlink", path, errno);
  return OutputFile::create(path);
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw io_error("mkdir", path, error.value());
}

// A name that a pack may have left at the top of its directory.
bool is_name_of_store(std::string_view name) {
  return name == kJournalName || name.starts_with(kManifestName) || name == kHeadersName ||
         name == kDenseName || name == kFilesDirectory ||
         (name.starts_with("experts-") && name.ends_with(".bin"));
}

class Packer {
 public:
  Packer(const std::string& source, const std::string& target, const PackPlan& plan,
         const PackOptions& options)
      : options_(options),
        target_(without_slashes(target)),
        codec_(make_codec(options)),
        directory_(scan_directory(source, options.exclude, Depth::kTree)),
        weights_(read_weights(directory_.path, select_weights(directory_, OtherWeights::kRefuse))),
        units_(make_units(weights_, plan, directory_.path)),
        file_starts_(file_positions(weights_)),
        partial_(target_, is_name_of_store) {
    manifest_.architecture = plan.architecture;
    manifest_.codec.name = options.codec;
    manifest_.slices = options.slices;
    if (planes() != Planes::kNone) {
      manifest_.codec.level = level();
      manifest_.codec.chunks = options_.chunks;
    }
    manifest_.tensors = weights_.tensors;
    manifest_.empty_directories = directory_.empty_directories;
    identity_.source = &directory_;
    identity_.options =
        fmt::format("codec {}, level {}, chunks {}, expert files of {} bytes", manifest_.codec.name, level(),
                    manifest_.codec.chunks, options_.expert_file_bytes);
    if (options_.keep_columns) identity_.options += ", columns as they are";
    if (options_.least_split_dense != kMinSplitDenseBytes)
      identity_.options += fmt::format(", dense pieces of {} bytes split", options_.least_split_dense);
    if (options_.slices)
      identity_.options +=
          fmt::format(", slices {} {}", codec::kAmat, codec::slice_bits_text(*options_.slices));
    if (options_.dense == DenseWeights::kInt8) identity_.options += ", dense int8";
    exact_ = exact_tensors(plan);
    identity_.plan = hex64(fingerprint(weights_, units_, plan.architecture));
    list_sources();
    for (const StoredSource& source : manifest_.sources) identity_.weights.push_back(source.weights);
  }

  PackResult run() {
    resume();
    check_space();
    report();
    copy_headers();
    copy_files();
    pack_weights();
    finish_hashes();
    check_source_unchanged();
    return publish();
  }

 private:
  // Null: native.
  static std::unique_ptr<const codec::ExponentCodec> make_codec(const PackOptions& options) {
    if (options.codec != codec::kNativeCodec) return codec::make_exponent_codec(options.codec, options.level);
    if (options.level)
      throw Error(ErrorKind::kUsage, "codec native has no levels").in("--level").fix("leave --level out");
    return nullptr;
  }
  Planes planes() const {
    return codec_ == nullptr ? Planes::kTiled : codec_->name() == "none" ? Planes::kNone : Planes::kFlat;
  }
  std::uint64_t level() const { return codec_ == nullptr ? 0 : static_cast<std::uint64_t>(codec_->level()); }
  Coding coding() const {
    return {
        planes(),       options_.chunks, options_.least_split_dense, options_.keep_columns, options_.slices,
        options_.dense, exact_};
  }
  std::vector<std::uint32_t> exact_tensors(const PackPlan& plan) const {
    std::vector<std::uint32_t> indices;
    for (const std::string& name : plan.exact) {
      const TensorInfo& tensor = checked_tensor(weights_.tensors, {name, 0, 0}, directory_.path);
      indices.push_back(static_cast<std::uint32_t>(&tensor - weights_.tensors.data()));
    }
    std::sort(indices.begin(), indices.end());
    return indices;
  }
  PieceCoding coding(const PackUnit& unit, const UnitPiece& piece) const {
    return coding_of(weights_, unit, piece, coding());
  }

  void list_sources() {
    for (const SourceFile& file : directory_.files) {
      StoredSource stored;
      stored.path = file.relative;
      stored.size = file.size;
      manifest_.sources.push_back(stored);
    }
    for (const WeightFile& file : weights_.files) {
      const SourceFile* found = directory_.find(file.relative);
      if (found == nullptr || found->size != file.size) {
        throw Error(ErrorKind::kInvalid, "the source changes while it is packed")
            .in(directory_.path + "/" + file.relative)
            .fix("pack it again once nothing writes to it");
      }
      source_of_file_.push_back(static_cast<std::size_t>(found - directory_.files.data()));
      manifest_.sources[source_of_file_.back()].weights = true;
    }
    for (const TensorPlace& place : weights_.places) {
      manifest_.places.push_back({static_cast<std::uint32_t>(source_of_file_[place.file]), place.offset});
    }
    for (const StoredSource& source : manifest_.sources) total_bytes_ += source.size;
  }

  // ---- the journal

  void resume() {
    const std::string path = partial_.file(kJournalName);
    JournalContent content = read_journal(path);
    std::vector<std::uint32_t> dense;
    if (content.records.empty()) {
      // A run that was killed leaves a journal, if any file at all; or, just before the rename, the manifest
      // instead.
      if (!partial_.has(kJournalName) && !partial_.has(kManifestName) && !partial_.empty()) {
        throw Error(ErrorKind::kInvalid, "something else than an unfinished store is in the way")
            .in(partial_.path())
            .fix("remove it or choose another name");
      }
      partial_.clear(kJournalName);
    } else {
      copy_again_ = check_identity(content.records.front(), identity_, partial_.path());
      for (std::size_t i = 1; i < content.records.size(); ++i) take_record(content.records[i], path, dense);
    }
    for (std::size_t i = 0; i < next_unit_; ++i) done_bytes_ += unit_bytes(units_[i]);
    resumed_bytes_ = done_bytes_;
    journal_ = std::make_unique<JournalWriter>(path, content.valid_bytes);
    if (content.records.empty()) {
      journal_->add(identity_record(identity_));
      journal_->commit();
      sync_directory(partial_.path());
    }
    writer_ = std::make_unique<UnitWriter>(partial_.path(), manifest_, std::move(dense),
                                           options_.expert_file_bytes);
  }

  void take_record(const std::string& record, const std::string& path, std::vector<std::uint32_t>& dense) {
    const auto wrong = [&] {
      return Error(ErrorKind::kCorrupt, "the journal of the unfinished store does not fit its plan")
          .in(path)
          .fix("remove " + partial_.path() + " to start over");
    };
    JsonReader json(record, path);
    std::string key;
    json.begin_object();
    json.next_key(key);
    if (key == "file" || key == "hash") {
      const std::uint64_t source = json.read_number();
      json.next_key(key);
      if (source >= manifest_.sources.size()) throw wrong();
      const std::string sha256 = json.read_string();
      if (std::ranges::count(copy_again_, manifest_.sources[source].path) > 0) return;
      manifest_.sources[source].sha256 = sha256;
      if (!manifest_.sources[source].weights) done_bytes_ += manifest_.sources[source].size;
    } else if (key == "dense" || key == "expert") {
      if (next_unit_ >= units_.size()) throw wrong();
      const PackUnit& unit = units_[next_unit_++];
      const std::size_t first_piece = manifest_.pieces.size();
      if (key == "dense") {
        read_piece_json(json, manifest_, 0);
        dense.push_back(static_cast<std::uint32_t>(first_piece));
      } else {
        read_expert_json(json, manifest_);
      }
      const bool same = unit.is_expert == (key == "expert") &&
                        manifest_.pieces.size() - first_piece == unit.pieces.size() &&
                        std::equal(unit.pieces.begin(), unit.pieces.end(),
                                   manifest_.pieces.begin() + static_cast<std::ptrdiff_t>(first_piece),
                                   [](const UnitPiece& a, const PieceEntry& b) {
                                     return a.tensor == b.tensor && a.first == b.first && a.count == b.count;
                                   });
      if (!same) throw wrong();
    } else {
      throw wrong();
    }
  }

  void commit() {
    writer_->sync();
    journal_->commit();
    last_commit_ = Clock::now();
  }

  // ---- sizes and progress

  Bytes unit_bytes(const PackUnit& unit) const {
    Bytes bytes = 0;
    for (const UnitPiece& piece : unit.pieces)
      bytes += piece.count * dtype_bytes(weights_.tensors[piece.tensor].dtype);
    return bytes;
  }

  // A guess from below: a pack that may fit is not refused, and one that fills the disk after all can be
  // resumed.
  // A pack that has not begun leaves nothing behind when there is no room for it.
  void check_space() {
    const double exponent_ratio = manifest_.codec.name == "lz4" ? 0.5 : 0.3;
    double need = 0;
    for (std::size_t i = next_unit_; i < units_.size(); ++i) {
      for (const UnitPiece& piece : units_[i].pieces) {
        const auto count = static_cast<double>(piece.count);
        switch (coding(units_[i], piece).encoding) {
          case Encoding::kRaw:
            need += count * static_cast<double>(dtype_bytes(weights_.tensors[piece.tensor].dtype));
            break;
          case Encoding::kSplit:
            need += count * (1 + exponent_ratio);
            break;
          case Encoding::kSliced:
            need += count * (options_.slices->high / 8.0 + 3.0 / codec::kCellColumns);
            break;
          case Encoding::kInt8:
            need += count;
            break;
        }
      }
    }
    for (const StoredSource& source : manifest_.sources) {
      if (!source.weights && source.sha256.empty()) need += static_cast<double>(source.size);
    }
    need *= 1.1;  // padding, the manifest, and exponents that compress worse than these
    const Bytes free = free_space(partial_.path());
    if (need > static_cast<double>(free)) {
      const std::string path = next_unit_ == 0 ? target_ : partial_.path();
      if (next_unit_ == 0) {
        writer_.reset();
        journal_.reset();
        partial_.discard();
      }
      const ComparedBytes sizes = compared_bytes(static_cast<Bytes>(need), free);
      throw Error(ErrorKind::kIo, "not enough free space for the store")
          .in(path)
          .expected("about " + sizes.expected)
          .found(sizes.found)
          .fix("free some space or choose another place");
    }
  }

  void report() const {
    if (options_.on_progress) options_.on_progress({std::min(done_bytes_, total_bytes_), total_bytes_});
  }

  void check_interrupted() const {
    if (options_.interrupted && options_.interrupted()) throw_interrupted();
  }
  // Every unit that is whole is kept.
  void keep_if_interrupted() {
    if (!options_.interrupted || !options_.interrupted()) return;
    commit();
    throw_interrupted();
  }
  [[noreturn]] void throw_interrupted() const {
    throw Error(ErrorKind::kInterrupted, "interrupted; what is packed so far is kept")
        .in(partial_.path())
        .fix("run the same command again to go on");
  }

  // ---- stages

  void copy_headers() {
    const std::string path = partial_.file(kHeadersName);
    OutputFile out = create_afresh(path);
    for (std::size_t i = 0; i < weights_.files.size(); ++i) {
      const std::string head =
          read_safetensors_head(InputFile::open(directory_.path + "/" + weights_.files[i].relative));
      StoredSource& source = manifest_.sources[source_of_file_[i]];
      source.header = {out.size(), head.size()};
      source.header_xxh3 = xxh3(std::as_bytes(std::span(head.data(), head.size())));
      out.write(std::string_view(head));
      if (next_unit_ == 0) done_bytes_ += head.size();
    }
    out.close();
  }

  void copy_files() {
    const auto buffer = make_buffer(kMiB);
    make_directories(partial_.file(kFilesDirectory));
    for (std::size_t i = 0; i < manifest_.sources.size(); ++i) {
      StoredSource& source = manifest_.sources[i];
      if (source.weights || !source.sha256.empty()) continue;
      const InputFile in = InputFile::open(directory_.path + "/" + source.path);
      const std::string to = partial_.file(kFilesDirectory) + "/" + source.path;
      make_directories(parent_directory(to));
      OutputFile out = create_afresh(to);
      Sha256Stream sum;
      for (Bytes at = 0; at < source.size;) {
        const std::span<std::byte> bytes(buffer.get(),
                                         static_cast<std::size_t>(std::min<Bytes>(kMiB, source.size - at)));
        in.read_at(at, bytes);
        sum.update(bytes);
        out.write(bytes);
        at += bytes.size();
        done_bytes_ += bytes.size();
        report();
        check_interrupted();
      }
      in.drop_cache(0, source.size);
      out.close();
      for (std::string at = parent_directory(to); at.size() >= partial_.path().size();
           at = parent_directory(at))
        sync_directory(at);
      source.sha256 = sum.hex_digest();
      journal_->add(fmt::format("{{\"file\":{},\"sha256\":\"{}\"}}", i, source.sha256));
      journal_->commit();
    }
  }

  void pack_weights() {
    std::vector<SourceHasher::Input> inputs;
    for (std::size_t i = 0; i < weights_.files.size(); ++i) {
      const std::string path = directory_.path + "/" + weights_.files[i].relative;
      source_files_.push_back(InputFile::open(path));
      inputs.push_back({path, weights_.files[i].size, !manifest_.sources[source_of_file_[i]].sha256.empty()});
    }
    hasher_ = std::make_unique<SourceHasher>(std::move(inputs));

    PackSlices slices(weights_, units_, coding(), next_unit_);
    Pipeline<Slice> pipeline;
    pipeline.threads = options_.threads == 0 ? usable_cpus() : options_.threads;
    pipeline.memory_limit = options_.memory;
    pipeline.next = [&slices](Slice& slice) { return slices.next(slice); };
    // Quantised: the words, at most a byte for each of two or four of theirs, and padding.
    pipeline.memory = [](const Slice& slice) {
      return slice.is_split()       ? slice.count * 5
             : slice.is_quantised() ? slice.length + slice.matrix.code_bytes(9)
                                    : slice.length;
    };
    pipeline.load = [this](Slice& slice) { load(slice); };
    pipeline.work = [this](Slice& slice) { work(slice); };
    pipeline.finish = [this](Slice& slice) { finish(slice); };
    pipeline.poll = [this] {
      report();
      keep_if_interrupted();
    };
    last_commit_ = Clock::now();
    pipeline.run();
    commit();
  }

  // Reader thread.
  void load(Slice& slice) {
    const Bytes begin = file_starts_[slice.file] + slice.offset, end = begin + slice.length;
    slice.words = make_buffer(slice.length);
    const InputFile& file = source_files_[slice.file];
    file.read_at(slice.offset, {slice.words.get(), static_cast<std::size_t>(slice.length)});
    hasher_->allow(end);
    // Whoever comes last drops the pages; the reader does so, too, when the hasher is far behind.
    if (hasher_->is_past(end) || end > hasher_->position() + kMaxHashLag)
      file.drop_cache(slice.offset, slice.length);
  }

  // Worker threads.
  void work(Slice& slice) const {
    if (slice.is_quantised()) return quantise(slice);
    if (!slice.is_split()) return;
    const auto count = static_cast<std::size_t>(slice.count);
    slice.sm = make_buffer(count);
    const Buffer buffer = make_buffer(count);
    const std::span<std::byte> exponents(buffer.get(), count), sm(slice.sm.get(), count);
    const std::span<const std::byte> words(slice.words.get(), static_cast<std::size_t>(slice.length));
    if (codec_ != nullptr) {
      codec::split_bf16(words, exponents, sm, options_.isa);
      slice.words.reset();
      slice.chunk = codec_->encode(exponents);
    } else {
      codec::split_tiles(words, slice.tiles, exponents, sm, options_.isa);
      slice.words.reset();
      slice.chunk = {codec::ChunkKind::kCodec, codec::encode_native(exponents, slice.tiles, options_.isa)};
      if (slice.chunk.bytes.empty())
        slice.chunk = {codec::ChunkKind::kRaw, {exponents.begin(), exponents.end()}};
    }
    slice.chunk_xxh3 = xxh3(slice.chunk.bytes);
  }

  void quantise(Slice& slice) const {
    const auto& [tensor, first, count] = units_[slice.unit].pieces[slice.piece];
    try {
      slice.strips = {slice.encoding,
                      slice.matrix,
                      options_.slices.value_or(codec::SliceBits{}),
                      weights_.tensors[tensor].dtype,
                      {slice.words.get(), static_cast<std::size_t>(slice.length)},
                      first / slice.matrix.columns + slice.first * codec::kStripRows};
    } catch (Error& error) {
      throw error.in(fmt::format("{}/{}, tensor \"{}\", {}", directory_.path,
                                 weights_.files[slice.file].relative, weights_.tensors[tensor].name,
                                 error.where()));
    }
    slice.words.reset();
  }

  // The caller's thread, in order.
  void finish(Slice& slice) {
    const PackUnit& unit = units_[slice.unit];
    if (!unit_open_) {
      std::vector<UnitWriter::PieceShape> shapes;
      shapes.reserve(unit.pieces.size());
      for (const UnitPiece& piece : unit.pieces) {
        const PieceCoding how = coding(unit, piece);
        shapes.push_back({piece.tensor, piece.first, piece.count, how.encoding, how.tiles, how.matrix,
                          piece.count * dtype_bytes(weights_.tensors[piece.tensor].dtype)});
      }
      if (unit.is_expert) {
        writer_->begin_expert(unit.layer, unit.index, shapes);
      } else {
        writer_->begin_dense(shapes.front());
      }
      unit_open_ = true;
    }
    if (slice.is_split()) {
      writer_->put_split(slice.piece, slice.first, {slice.sm.get(), static_cast<std::size_t>(slice.count)},
                         slice.chunk, slice.chunk_xxh3);
    } else if (slice.is_quantised()) {
      writer_->put_quantised(slice.piece, slice.first, slice.strips.parts());
    } else if (slice.length > 0) {
      const Bytes width = dtype_bytes(weights_.tensors[unit.pieces[slice.piece].tensor].dtype);
      writer_->put_raw(slice.piece, slice.first * width,
                       {slice.words.get(), static_cast<std::size_t>(slice.length)});
    }
    done_bytes_ += slice.length;
    if (!slice.last) return;
    journal_->add(writer_->end());
    unit_open_ = false;
    take_hashes();
    if (writer_->bytes_since_sync() >= options_.journal_bytes ||
        Clock::now() - last_commit_ >= options_.journal_time)
      commit();
  }

  void take_hashes() {
    for (const auto& [file, sha256] : hasher_->take_finished()) {
      manifest_.sources[source_of_file_[file]].sha256 = sha256;
      journal_->add(fmt::format("{{\"hash\":{},\"sha256\":\"{}\"}}", source_of_file_[file], sha256));
    }
  }

  void finish_hashes() {
    hasher_->allow_all();
    while (!hasher_->done()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      take_hashes();
      if (Clock::now() - last_commit_ >= options_.journal_time) commit();
      keep_if_interrupted();
    }
    take_hashes();
    journal_->commit();
    hasher_.reset();
    source_files_.clear();
  }

  void check_source_unchanged() const {
    const SourceDirectory now = scan_directory(directory_.path, options_.exclude, Depth::kTree);
    for (const SourceFile& file : directory_.files) {
      const SourceFile* same = now.find(file.relative);
      if (same == nullptr || !same_version(*same, file)) {
        throw Error(ErrorKind::kInvalid, "the file changed while it was packed")
            .in(directory_.path + "/" + file.relative)
            .fix("remove " + partial_.path() + " and pack again");
      }
    }
  }

  PackResult publish() {
    // Into the order of the manifest: dense pieces first, then the experts ascending.
    Manifest ordered = manifest_;
    ordered.pieces.clear();
    for (const std::uint32_t piece : writer_->dense()) ordered.pieces.push_back(manifest_.pieces[piece]);
    ordered.dense_pieces = static_cast<std::uint32_t>(ordered.pieces.size());
    std::sort(ordered.experts.begin(), ordered.experts.end(), [](const ExpertEntry& a, const ExpertEntry& b) {
      return std::tie(a.layer, a.index) < std::tie(b.layer, b.index);
    });
    for (ExpertEntry& expert : ordered.experts) {
      const auto from = manifest_.pieces.begin() + expert.first_piece;
      expert.first_piece = static_cast<std::uint32_t>(ordered.pieces.size());
      ordered.pieces.insert(ordered.pieces.end(), from, from + expert.piece_count);
    }
    check_manifest(ordered, partial_.file(kManifestName));
    const std::string text = write_manifest(ordered);

    std::vector<std::string> names = {std::string(kManifestName), std::string(kJournalName),
                                      std::string(kHeadersName), std::string(kFilesDirectory)};
    PackResult result;
    result.stored_bytes = text.size() + ordered.headers_bytes();
    for (const DataFile& file : ordered.data_files) {
      names.push_back(file.name);
      result.stored_bytes += file.size;
    }
    for (const StoredSource& source : ordered.sources) {
      if (!source.weights) result.stored_bytes += source.size;
    }
    result.source_bytes = total_bytes_;
    result.resumed_bytes = resumed_bytes_;
    result.experts = ordered.experts.size();
    result.tensors = ordered.tensors.size();

    writer_.reset();
    write_file_atomically(partial_.file(kManifestName), text);
    partial_.remove_others(names);
    journal_.reset();
    // From the removal of the journal to the rename the store is whole but has none; a run that finds it so
    // begins anew.
    partial_.publish(kJournalName);
    done_bytes_ = total_bytes_;
    report();
    return result;
  }

  const PackOptions& options_;
  const std::string target_;
  const std::unique_ptr<const codec::ExponentCodec> codec_;
  const SourceDirectory directory_;
  const Weights weights_;
  const std::vector<PackUnit> units_;
  const std::vector<Bytes> file_starts_;
  PartialDirectory partial_;

  std::vector<std::uint32_t> exact_;  // tensors that are not rounded, ascending
  PackIdentity identity_;
  std::vector<std::string> copy_again_;      // files beside the weights that changed since an earlier run
  Manifest manifest_;                        // pieces and experts in the order of units_
  std::vector<std::size_t> source_of_file_;  // weights_.files[i] → manifest_.sources
  Bytes total_bytes_ = 0, done_bytes_ = 0, resumed_bytes_ = 0;
  std::size_t next_unit_ = 0;  // the first that earlier runs have not finished
  std::unique_ptr<JournalWriter> journal_;
  std::unique_ptr<UnitWriter> writer_;
  std::vector<InputFile> source_files_;
  std::unique_ptr<SourceHasher> hasher_;
  bool unit_open_ = false;
  Clock::time_point last_commit_;
};

}  // namespace

PackResult pack(const std::string& source, const std::string& target, const PackPlan& plan,
                const PackOptions& options) {
  codec::check_chunk_count(options.chunks, "--chunks");
  if (options.dense == DenseWeights::kInt8 && !options.slices) {
    throw Error(ErrorKind::kUsage, "dense weights of 8 bits belong to a store with sliced experts")
        .in("--dense")
        .fix("give --slices, too");
  }
  check_outside(target, source);
  check_not_packed(source);
  return Packer(source, target, plan, options).run();
}

}  // namespace sluice::store
