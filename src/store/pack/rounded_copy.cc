#include "store/pack/rounded_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/float16.h"
#include "base/machine/thread_pool.h"
#include "base/stop_request.h"
#include "codec/slices/quantised_words.h"
#include "codec/slices/sliced_matrix.h"
#include "store/pack/data_writer.h"
#include "store/pack/ordered_pipeline.h"
#include "store/pack/partial_directory.h"
#include "store/pack/read_in_steps.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/source_directory.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

// Marks an unfinished directory of ours, so that no other directory is taken for one and cleared.
constexpr std::string_view kQuantiseMarker = ".sluice-quantise";
constexpr std::size_t kGroup = codec::kCellColumns;
constexpr Bytes kJobBytes = 4 * kMiB;  // a longer row is one job

double load(DType dtype, const std::byte* at) {
  double value = 0;
  codec::with_words(dtype, [&](auto words) { value = decltype(words)::load(at); });
  return value;
}

void store_value(DType dtype, double value, std::byte* at) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::kF32) {
    std::memcpy(at, &single, 4);
    return;
  }
  const std::uint16_t word = dtype == DType::kBF16 ? float_to_bf16(single) : double_to_fp16(value);
  std::memcpy(at, &word, 2);
}

// A matrix of an expert, and rows of it in the pipeline.
struct Matrix {
  const Piece* piece = nullptr;
  StoredPiece stored;
  std::uint64_t columns = 0;
  Bytes row_bytes() const { return columns * dtype_bytes(stored.dtype); }
};
struct Job {
  const Matrix* matrix = nullptr;
  Bytes begin = 0, length = 0;  // in the matrix
  std::unique_ptr<std::byte[]> words;
  std::span<std::byte> bytes() const { return {words.get(), static_cast<std::size_t>(length)}; }
};

class Copier {
 public:
  Copier(const std::string& source, const std::string& target, const PackPlan& plan,
         const codec::QuantiserVariant& variant, codec::SliceBits bits, const RoundedCopyOptions& options)
      : plan_(plan),
        variant_(variant),
        bits_(bits),
        options_(options),
        directory_(scan_directory(source, {}, Depth::kTree)),
        checkpoint_(open_directory(source)),
        matrices_(list_matrices()),
        partial_(target, [&](std::string_view name) { return is_ours(name); }) {
    for (const SourceFile& file : directory_.files) total_ += file.size;
    for (const Matrix& matrix : matrices_) total_ += matrix.stored.first().length;
  }

  void run() {
    if (!partial_.has(kQuantiseMarker) && !partial_.empty()) {
      throw Error(ErrorKind::kInvalid, "this directory is not an unfinished copy")
          .in(partial_.path())
          .expected(fmt::format("{} beside its files, or no file", kQuantiseMarker))
          .found("files without it")
          .fix("remove the directory or choose another name");
    }
    try {
      partial_.clear();
      OutputFile::create(partial_.file(kQuantiseMarker)).close();
      Bytes needed = 0;
      for (const SourceFile& file : directory_.files) needed += file.size;
      check_room(partial_.path(), needed);
      for (const SourceFile& file : directory_.files) copy(file);
      round_experts();
      partial_.publish(kQuantiseMarker);
    } catch (...) {
      try {
        partial_.discard();
      } catch (const Error&) {
        // The first error is reported; it names the directory, so that users see what the directory is.
      }
      throw;
    }
  }

 private:
  bool is_ours(std::string_view name) const {
    return name == kQuantiseMarker || std::ranges::any_of(directory_.files, [&](const SourceFile& file) {
             return std::string_view(file.relative).substr(0, file.relative.find('/')) == name;
           });
  }

  std::vector<Matrix> list_matrices() const {
    std::vector<Matrix> matrices;
    for (const ExpertPlan& expert : plan_.experts)
      for (const Piece& piece : expert.pieces)
        if (piece.elements > 0) matrices.push_back(matrix(piece));
    return matrices;
  }

  Matrix matrix(const Piece& piece) const {
    Matrix matrix{&piece, checkpoint_->locate(piece), 0};
    const std::vector<std::uint64_t>& shape = checkpoint_->find(piece.tensor)->shape;
    if (!shape.empty()) matrix.columns = shape.back();
    if (!matrix.stored.raw() || !codec::can_be_quantised(matrix.stored.dtype) || matrix.columns == 0 ||
        piece.elements % matrix.columns != 0) {
      throw Error(ErrorKind::kUnsupported, "an expert cannot be quantised")
          .in(fmt::format("tensor \"{}\"", piece.tensor))
          .expected("matrices of BF16, F16 or F32")
          .found(matrix.stored.raw() ? dtype_name(matrix.stored.dtype) : matrix.stored.format->name)
          .fix("choose another model");
    }
    return matrix;
  }

  void poll() const {
    if (options_.on_progress) options_.on_progress({done_, total_});
    if (options_.interrupted && options_.interrupted())
      throw interrupted_error("nothing is left behind").in(partial_.path());
  }

  void copy(const SourceFile& file) {
    const InputFile in = InputFile::open(directory_.path + "/" + file.relative);
    const std::string to = partial_.file(file.relative);
    std::error_code error;
    std::filesystem::create_directories(parent_directory(to), error);
    if (error) throw io_error("mkdir", parent_directory(to), error.value());
    OutputFile out = OutputFile::create(to);
    std::vector<std::byte> buffer(kMiB);
    for (Bytes at = 0; at < file.size;) {
      const std::span<std::byte> bytes = std::span(buffer).first(std::min<Bytes>(kMiB, file.size - at));
      in.read_at(at, bytes);
      out.write(bytes);
      at += bytes.size();
      done_ += bytes.size();
      poll();
    }
    in.drop_cache(0, file.size);
    out.close();
  }

  void round_experts() {
    std::vector<InputFile> in;
    std::vector<DataWriter> out;
    for (const std::string& path : checkpoint_->weight_files()) {
      in.push_back(InputFile::open(path));
      const std::string relative = std::filesystem::path(path).lexically_relative(directory_.path).string();
      out.push_back(DataWriter::open(partial_.file(relative), in.back().size()));
    }
    std::size_t next = 0;
    Bytes at = 0;  // in the next matrix
    Pipeline<Job> pipeline;
    pipeline.threads = options_.threads == 0 ? usable_cpus() : options_.threads;
    pipeline.memory_limit = options_.memory;
    pipeline.next = [&](Job& job) {
      if (next == matrices_.size()) return false;
      const Matrix& matrix = matrices_[next];
      const Bytes rows = std::max<Bytes>(1, kJobBytes / matrix.row_bytes()),
                  all = matrix.stored.first().length;
      job = {&matrix, at, std::min(rows * matrix.row_bytes(), all - at), nullptr};
      at += job.length;
      if (at < all) return true;
      at = 0;
      ++next;
      return true;
    };
    pipeline.memory = [](const Job& job) { return job.length; };
    pipeline.load = [&](Job& job, const StopRequest& failed) {
      const auto& stored = job.matrix->stored.first();
      job.words = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(job.length));
      read_in_steps(in[stored.file], stored.offset + job.begin, job.bytes(), failed);
      in[stored.file].drop_cache(stored.offset + job.begin, job.length);
    };
    pipeline.work = [this](Job& job, const StopRequest& failed) { round(job, failed); };
    pipeline.finish = [&](Job& job) {
      const auto& stored = job.matrix->stored.first();
      out[stored.file].write_at(stored.offset + job.begin, job.bytes());
      done_ += job.length;
    };
    pipeline.poll = [this] { poll(); };
    pipeline.run();
    for (DataWriter& file : out) file.sync();
  }

  // Runs on the worker threads.
  void round(Job& job, const StopRequest& failed) const {
    const Matrix& matrix = *job.matrix;
    const DType dtype = matrix.stored.dtype;
    const std::size_t width = dtype_bytes(dtype);
    const std::uint64_t first = matrix.piece->first_element + job.begin / width;
    for (std::uint64_t at = 0; at < job.length / width;) {
      if (at % matrix.columns == 0) stop_if(failed);
      const std::size_t count = std::min<std::uint64_t>(kGroup, matrix.columns - at % matrix.columns);
      std::byte* const words = job.words.get() + at * width;
      double weights[kGroup], rounded[kGroup];
      for (std::size_t i = 0; i < count; ++i) weights[i] = load(dtype, words + i * width);
      try {
        variant_.apply({weights, count}, bits_, {rounded, count});
      } catch (Error& error) {
        throw error.in(fmt::format("{}, tensor \"{}\", {} of the group at element {}", directory_.path,
                                   matrix.piece->tensor, error.where(), first + at));
      }
      for (std::size_t i = 0; i < count; ++i) store_value(dtype, rounded[i], words + i * width);
      at += count;
    }
  }

  const PackPlan& plan_;
  const codec::QuantiserVariant& variant_;
  const codec::SliceBits bits_;
  const RoundedCopyOptions& options_;
  const SourceDirectory directory_;
  const std::unique_ptr<Checkpoint> checkpoint_;
  const std::vector<Matrix> matrices_;
  PartialDirectory partial_;
  Bytes done_ = 0, total_ = 0;
};

}  // namespace

void write_rounded_copy(const std::string& source, const std::string& target, const PackPlan& plan,
                        const codec::QuantiserVariant& variant, codec::SliceBits bits,
                        const RoundedCopyOptions& options) {
  check_outside(target, source);
  check_not_gguf(source);
  check_not_packed(source);
  Copier(source, target, plan, variant, bits, options).run();
}

}  // namespace sluice::store
