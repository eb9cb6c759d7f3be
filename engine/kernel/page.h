#pragma once
// The events on a page of the kernel's ring buffer, as trace_pipe_raw gives it (the layout is
// tracefs's events/header_page, and that of include/linux/ring_buffer.h). Pure; trusts nothing:
// libtraceevent's kbuffer believes the lengths that stand in a page.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"

namespace probed::kernel {

struct PageEvent {
  uint64_t time = 0;  // of the instance's clock
  std::span<const std::byte> record;
};

// What was overwritten before the page's first event.
struct PageLoss {
  bool any = false;
  std::optional<uint64_t> events;  // the kernel had no room to say how many
};

class Page {
 public:
  // `bytes`, as read, outlive the page. BAD_PAGE: longer in its own words than in fact.
  static Result<Page> Open(std::span<const std::byte> bytes);

  const PageLoss& loss() const { return loss_; }
  size_t data_bytes() const { return data_.size(); }
  // Nothing at the end; then damaged() says whether that was an end.
  std::optional<PageEvent> Next();
  bool damaged() const { return damaged_; }

 private:
  Page(uint64_t time, std::span<const std::byte> data, PageLoss loss)
      : time_(time), data_(data), loss_(loss) {}
  std::optional<uint32_t> TakeWord();
  bool Skip(uint32_t bytes);
  bool Step(PageEvent& event);
  bool TakeData(uint32_t bytes, PageEvent& event);
  void End(bool damaged);

  uint64_t time_;
  std::span<const std::byte> data_;  // what is not read yet
  PageLoss loss_;
  bool damaged_ = false;
};

}  // namespace probed::kernel
