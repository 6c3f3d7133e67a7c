#include "store/pack/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/machine/thread_pool.h"
#include "codec/exponents/plane_decoder.h"
#include "codec/matrix_format.h"
#include "store/format.h"
#include "store/pack/ordered_pipeline.h"
#include "store/piece_encoding.h"
#include "store/split_memory.h"

namespace sluice::store {
namespace {

constexpr Bytes kRawRunBytes = 4 * kMiB;

using Buffer = std::unique_ptr<std::byte[]>;
Buffer make_buffer(Bytes bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
}

// How many places of a chunk one run has. A chunk that is not in groups is one run.
Bytes run_places(const PieceEntry& piece, const StoredChunk& chunk) {
  return piece.tiled() ? std::min(split_step(piece.tiles.group_places()), chunk.count) : chunk.count;
}

// The memory that a run of `places` places of a chunk takes: words, signs and mantissas, and the coded chunk,
// which every run counts, though runs share it.
Bytes run_memory(const StoredChunk& chunk, Bytes places) { return merge_memory(places) + chunk.bytes.length; }

// The bytes of a chunk of exponents; the runs that are made from it share them.
struct Coded {
  Buffer bytes;
  Bytes length = 0;
};

// A run of a source file: bytes of no tensor, of a raw piece, or groups of a chunk of a split piece with
// their share of the plane.
struct Run {
  std::size_t source = 0;
  bool opens = false, closes = false;  // the first and the last run of the file
  const PieceEntry* piece = nullptr;   // null: bytes of no tensor
  const StoredChunk* chunk = nullptr;  // a chunk of exponents; null: bytes as they are
  Region part;                         // what the store has: `raw`, `sm` or a plane of a format …
  std::uint64_t part_xxh3 = 0;
  Bytes first = 0, length = 0;  // … and the bytes of it; of no tensor: their place in headers.bin
  bool completes = false;       // the last run of its piece, or of no tensor in this file
  Bytes in_chunk = 0;           // where the run begins in its chunk
  std::shared_ptr<const Coded> coded;
  Buffer stored, words;
  Bytes words_bytes = 0;
};

class Restorer {
 public:
  Restorer(const std::string& store, const Manifest& manifest, const RestoreOptions& options,
           RestoreSink& sink)
      : manifest_(manifest), options_(options), sink_(sink), decoder_(manifest.codec.name, options.isa) {
    for (const DataFile& file : manifest.data_files)
      files_.push_back(InputFile::open(store + "/" + file.name));
    headers_ = InputFile::open(store + "/" + std::string(kHeadersName));
    // Sorted by place in the source: file, then offset, then element.
    for (const PieceEntry& piece : manifest.pieces)
      each_source_range(manifest, piece, [&](const SourceRange& range) {
        order_.push_back({range, &piece});
      });
    std::sort(order_.begin(), order_.end(), [&](const Range& a, const Range& b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < manifest.sources.size(); ++i) {
      if (manifest.sources[i].weights) sources_.push_back(i);
    }
  }

  void run() {
    Pipeline<Run> pipeline;
    pipeline.threads = options_.threads == 0 ? usable_cpus() : options_.threads;
    pipeline.memory_limit = options_.memory;
    pipeline.next = [this](Run& run) { return next(run); };
    pipeline.memory = [](const Run& run) {
      return run.chunk == nullptr ? run.length : run_memory(*run.chunk, run.length);
    };
    pipeline.load = [this](Run& run, const StopRequest&) { load(run); };
    pipeline.work = [this](Run& run, const StopRequest&) { work(run); };
    pipeline.finish = [this](Run& run) { finish(run); };
    pipeline.poll = [this] { sink_.poll(); };
    pipeline.run();
  }

 private:
  struct Range : SourceRange {
    const PieceEntry* piece;
  };
  std::tuple<std::uint32_t, Bytes, std::uint64_t, std::uint64_t> key(const Range& range) const {
    const StoredTensor& place = manifest_.places[range.tensor];
    return {place.source, place.offset, range.first, range.count};
  }

  // Runs on the reader thread.
  bool next(Run& run) {
    while (queue_at_ == queue_.size()) {
      if (next_source_ == sources_.size()) return false;
      list_runs(sources_[next_source_++]);
    }
    run = std::move(queue_[queue_at_++]);
    return true;
  }

  void list_runs(std::size_t source) {
    queue_.clear();
    queue_at_ = 0;
    RestOfFile rest{rest_of(manifest_, source), manifest_.sources[source].header};
    for (; next_piece_ < order_.size(); ++next_piece_) {
      const Range& range = order_[next_piece_];
      const StoredTensor& place = manifest_.places[range.tensor];
      if (place.source != source) break;
      list_rest(source, rest, place.offset);
      list_range(source, range);
    }
    list_rest(source, rest, manifest_.sources[source].size);
    if (rest.stored.length == 0 && queue_.empty()) queue_.push_back(rest_run(source, rest.stored));
    for (auto run = queue_.rbegin(); run != queue_.rend(); ++run) {
      if (run->piece != nullptr) continue;
      run->completes = true;
      break;
    }
    queue_.front().opens = true;
    queue_.back().closes = true;
  }

  // What of a file belongs to no tensor and is not listed yet: where it is there, and in headers.bin.
  struct RestOfFile {
    std::vector<Region> regions;
    Region stored;
    std::size_t next = 0;
  };

  static Run rest_run(std::size_t source, const Region& stored) {
    Run run;
    run.source = source;
    run.first = stored.offset;
    run.length = stored.length;
    return run;
  }

  // The bytes before `place` of the file.
  void list_rest(std::size_t source, RestOfFile& rest, Bytes place) {
    for (; rest.next < rest.regions.size() && rest.regions[rest.next].offset < place; ++rest.next) {
      for (Bytes left = rest.regions[rest.next].length; left > 0;) {
        const Bytes length = std::min(kRawRunBytes, left);
        queue_.push_back(rest_run(source, {rest.stored.offset, length}));
        rest.stored.offset += length;
        rest.stored.length -= length;
        left -= length;
      }
    }
  }

  void list_range(std::size_t source, const Range& range) {
    const auto add = [&](const StoredChunk* chunk, Bytes first, Bytes length, bool completes) {
      Run run;
      run.source = source;
      run.piece = range.piece;
      run.part = range.bytes;
      run.part_xxh3 = range.xxh3;
      run.chunk = chunk;
      if (chunk != nullptr) run.in_chunk = first - chunk->first;
      run.first = first;
      run.length = length;
      run.completes = completes;
      queue_.push_back(std::move(run));
    };
    if (encoding_of(*range.piece).runs == Runs::kExponents) {
      const std::span<const StoredChunk> chunks = runs_of(manifest_, *range.piece);
      for (const StoredChunk& chunk : chunks) {
        const Bytes step = run_places(*range.piece, chunk);
        for (Bytes at = 0; at < chunk.count; at += step) {
          const Bytes length = std::min(step, chunk.count - at);
          add(&chunk, chunk.first + at, length, &chunk == &chunks.back() && at + length == chunk.count);
        }
      }
      return;
    }
    for (Bytes at = 0; at < range.bytes.length; at += kRawRunBytes) {
      const Bytes length = std::min(kRawRunBytes, range.bytes.length - at);
      add(nullptr, at, length, at + length == range.bytes.length);
    }
  }

  static void read(const InputFile& file, Bytes offset, Bytes length, Buffer& into) {
    into = make_buffer(length);
    file.read_at(offset, {into.get(), static_cast<std::size_t>(length)});
    file.drop_cache(offset, length);
  }

  // Runs on the reader thread.
  void load(Run& run) {
    if (run.piece == nullptr) {
      read(headers_, run.first, run.length, run.stored);
      return;
    }
    const InputFile& file = files_[run.piece->file];
    read(file, run.part.offset + run.first, run.length, run.stored);
    if (run.chunk != nullptr) run.coded = coded_chunk(file, *run.chunk);
  }

  // Reads a chunk once for the runs that follow each other in it, and checks it.
  std::shared_ptr<const Coded> coded_chunk(const InputFile& file, const StoredChunk& chunk) {
    if (chunk_ == &chunk) return coded_;
    coded_.reset();
    const auto coded = std::make_shared<Coded>();
    coded->length = chunk.bytes.length;
    read(file, chunk.bytes.offset, coded->length, coded->bytes);
    check_sum(file.path(), chunk.bytes.offset, chunk.xxh3,
              xxh3({coded->bytes.get(), static_cast<std::size_t>(coded->length)}));
    chunk_ = &chunk;
    return coded_ = coded;
  }

  // Runs on the worker threads.
  void work(Run& run) const {
    if (run.chunk == nullptr) return;
    const StoredChunk& chunk = *run.chunk;
    const codec::ChunkKind kind = chunk.coded ? codec::ChunkKind::kCodec : codec::ChunkKind::kRaw;
    const std::span<const std::byte> coded(run.coded->bytes.get(),
                                           static_cast<std::size_t>(run.coded->length)),
        sm(run.stored.get(), static_cast<std::size_t>(run.length));
    const bool tiled = run.piece->tiled();
    codec::TileShape tiles, some;  // shapes of the chunk, and of the run
    if (tiled) {
      tiles = codec::tile_rows(run.piece->tiles, chunk.first, chunk.count).shape;
      some = codec::tile_rows(tiles, run.in_chunk, run.length).shape;
    }
    run.words_bytes = codec::kFormatBf16.bytes(tiled ? codec::MatrixShape{some.rows, some.columns}
                                                     : codec::MatrixShape{1, run.length});
    run.words = make_buffer(run.words_bytes);
    const std::span<std::byte> words(run.words.get(), static_cast<std::size_t>(run.words_bytes));
    try {
      if (tiled)
        decoder_.words_of_groups(kind, coded, sm, tiles, run.in_chunk / tiles.group_places(), some, words);
      else
        decoder_.words(kind, coded, sm, tiles, words);
    } catch (Error& error) {
      throw error.in(files_[run.piece->file].path(), chunk.bytes.offset);
    }
    run.coded.reset();
  }

  static void check_sum(const std::string& path, Bytes offset, std::uint64_t expected, std::uint64_t found) {
    if (expected == found) return;
    throw Error(ErrorKind::kCorrupt, "the checksum of a part is wrong")
        .in(path, offset)
        .expected(hex64(expected))
        .found(hex64(found))
        .fix("copy the store again, or pack the model again");
  }

  // Runs on the caller's thread, in order.
  void finish(Run& run) {
    const StoredSource& source = manifest_.sources[run.source];
    if (run.opens) sink_.begin(source);
    const std::span<const std::byte> stored(run.stored.get(), static_cast<std::size_t>(run.length));
    std::optional<Xxh3Stream>& sum = run.piece == nullptr ? rest_sum_ : sum_;
    sum->update(stored);
    sink_.write(run.chunk == nullptr
                    ? stored
                    : std::span<const std::byte>(run.words.get(), static_cast<std::size_t>(run.words_bytes)));
    if (run.completes) {
      if (run.piece == nullptr) {
        check_sum(headers_.path(), source.header.offset, source.header_xxh3, sum->digest());
      } else {
        check_sum(files_[run.piece->file].path(), run.part.offset, run.part_xxh3, sum->digest());
      }
      sum.emplace();
    }
    if (run.closes) sink_.end(source);
  }

  const Manifest& manifest_;
  const RestoreOptions& options_;
  RestoreSink& sink_;
  const codec::PlaneDecoder decoder_;
  std::vector<InputFile> files_;
  InputFile headers_;
  std::vector<Range> order_;          // by place in the source
  std::vector<std::size_t> sources_;  // the sources that are weight files
  // Over the piece that is being finished, and over what of the file belongs to no tensor.
  std::optional<Xxh3Stream> sum_{std::in_place}, rest_sum_{std::in_place};

  // Only the reader thread uses these.
  std::vector<Run> queue_;  // runs of one source file
  std::size_t queue_at_ = 0, next_source_ = 0, next_piece_ = 0;
  const StoredChunk* chunk_ = nullptr;  // that was read last …
  std::shared_ptr<const Coded> coded_;  // … and its bytes
};

}  // namespace

Bytes least_restore_memory(const Manifest& manifest) {
  Bytes most = kRawRunBytes;
  for (const PieceEntry& piece : manifest.pieces) {
    if (encoding_of(piece).runs != Runs::kExponents) continue;
    for (const StoredChunk& chunk : runs_of(manifest, piece))
      most = std::max(most, run_memory(chunk, run_places(piece, chunk)));
  }
  return most;
}

void restore_weights(const std::string& store, const Manifest& manifest, const RestoreOptions& options,
                     RestoreSink& sink) {
  Restorer(store, manifest, options, sink).run();
}

}  // namespace sluice::store
