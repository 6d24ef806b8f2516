/* SPDX-License-Identifier: GPL-2.0-only */

/**************************************************//**
@file include/fil0clock.h
A clock chooses the open file to close (the CLOCK algorithm, an approximation of LRU).

The open files form a ring, around which a hand moves.  Each file has a count, from COLD
up to HOT.  I/O adds 1, until the count is HOT.  The hand takes 1 from HOT, and leaves
lower counts as they are.  A file is hot if the count is HOT, and cold below.

A thread that needs a file to close moves the hand:

1. If the file at the hand is hot, the thread makes it cold and moves on.
2. If it is cold and may be closed at once, the thread chooses it.
3. If the thread finds no such file, it chooses the first cold file that may be closed
   after a sync.

One I/O does not make a file hot, because a thread opens every file for one I/O.  So a
scan of all tables does not push the files of the working set out.  (In the simulation of
the unit test, with 250 of 2,000 files open, 0.81 of the uses find their file open if one
I/O makes it hot, 0.87 with two or three, and 0.73 if the thread closes the oldest.)

A new file joins the ring behind the hand, so the hand comes to it last.

The owner's mutex protects the ring and the hand, but not the counts.  I/O changes a count
by a plain store, and only while the count is below HOT.  So I/O to a hot file writes no
shared memory.  Two threads may store at once, or the thread that moves the hand may store
between them: then one I/O is not counted.  Nothing depends on that.

A thread can find out whether there is I/O during some time: it sets the count to UNUSED
at the beginning, and any I/O changes that.  The answer is certain if no thread uses the
file at the beginning and at the end of that time, because a user counts its I/O before
it releases its reference.

The clock does not depend on the server; unittest/innodb_clock-t.cc tests it alone.
*******************************************************/

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/** A file's place in the ring.  All bytes 0: not in the ring */
template<class File> class fil_clock_place
{
  template<class> friend class fil_clock;
  /** count of I/O: COLD to HOT, or UNUSED; no mutex protects it. Relaxed, because a
  count that is lost or seen late only makes a file a little colder. was_unused() needs
  more: a user counts before it releases its reference (release), and the caller of
  was_unused() reads the number of references (acquire) before. */
  std::atomic<uint8_t> count;
  /** neighbours in the ring, or nullptr; protected by the owner's mutex */
  File *next, *prev;

public:
  static constexpr uint8_t UNUSED= 0, COLD= 1, HOT= 3;

  /** Count an I/O.  The caller needs no mutex. */
  void used() noexcept
  {
    const uint8_t n= count.load(std::memory_order_relaxed);
    if (n < HOT)
      count.store(uint8_t(n + 1), std::memory_order_relaxed);
  }

  bool is_hot() const noexcept
  { return count.load(std::memory_order_relaxed) == HOT; }

  /** The hand is at this file: make it cold if it is hot.
  @return whether the file was hot */
  bool cool() noexcept
  {
    const bool was_hot= is_hot();
    if (was_hot)
      count.store(HOT - 1, std::memory_order_relaxed);
    return was_hot;
  }

  /** Begin to watch for I/O. The caller holds the owner's mutex, and no thread uses the
  file.
  @return the argument for was_unused() */
  uint8_t watch() noexcept
  {
    const uint8_t before= count.load(std::memory_order_relaxed);
    count.store(UNUSED, std::memory_order_relaxed);
    return before;
  }

  /** Stop watching for I/O. The caller holds the owner's mutex.
  @return whether there was no I/O; trust this only if no thread uses the file */
  bool was_unused(uint8_t before) noexcept
  {
    const uint8_t n= count.load(std::memory_order_relaxed);
    count.store(before + n < HOT ? uint8_t(before + n) : HOT,
                std::memory_order_relaxed);
    return n == UNUSED;
  }

  bool is_in_ring() const noexcept { return next != nullptr; }
};

/** The ring. File has a member 'fil_clock_place<File> clock'. */
template<class File> class fil_clock
{
  /** the file that the hand comes to next, or nullptr if the ring is empty */
  File *hand= nullptr;
  size_t n_files= 0;

public:
  /** What to do with a file: keep it, sync and then close it, or close it */
  enum verdict { KEEP, SYNC_FIRST, CLOSE };
  /** Number of cold files after which the hand stops looking for one that may be closed
  at once, if it has seen one that needs a sync.  This bounds the walk if nearly all files
  have been written. */
  static constexpr unsigned MAX_PASSED= 64;
  /** Number of hot files that the hand makes cold before it treats a hot file like a cold
  one.  This bounds the walk if all files are hot. */
  static constexpr unsigned MAX_COOLED= 256;
  /** Largest number of files that the hand passes, so that a thread does not hold the
  owner's mutex for long if nearly all files are in use.  The next search continues from
  there. */
  static constexpr size_t MAX_LOOKED_AT= 1024;

  struct choice
  {
    /** nullptr with KEEP only */
    File *file;
    verdict how;
  };

  size_t size() const noexcept { return n_files; }

  /** Add a file that has just been opened, unless it is in the ring. */
  void add(File &file) noexcept
  {
    if (file.clock.is_in_ring())
      return;
    file.clock.count.store(fil_clock_place<File>::COLD,
                           std::memory_order_relaxed);
    if (!hand)
    {
      hand= &file;
      file.clock.next= file.clock.prev= &file;
    }
    else
    {
      file.clock.next= hand;
      file.clock.prev= hand->clock.prev;
      hand->clock.prev->clock.next= &file;
      hand->clock.prev= &file;
    }
    n_files++;
  }

  /** Remove a file, if it is in the ring. */
  void remove(File &file) noexcept
  {
    if (!file.clock.is_in_ring())
      return;
    if (hand == &file)
      hand= file.clock.next;
    if (hand == &file)
      hand= nullptr;
    else
    {
      file.clock.prev->clock.next= file.clock.next;
      file.clock.next->clock.prev= file.clock.prev;
    }
    file.clock.next= file.clock.prev= nullptr;
    n_files--;
  }

  /** Choose a file to close.
  @param judge  verdict(File&): what to do with a cold file
  @return the choice; the file stays in the ring.  KEEP if the hand has passed no file
  that may be closed */
  template<class Judge> choice victim(Judge judge) noexcept
  {
    choice found{nullptr, KEEP};
    unsigned passed= 0, cooled= 0;
    /* In the second round every file is cold, unless there was I/O meanwhile. */
    for (size_t left= 2 * n_files < MAX_LOOKED_AT ? 2 * n_files : MAX_LOOKED_AT;
         left; left--)
    {
      File *file= hand;
      hand= file->clock.next;
      if (cooled < MAX_COOLED && file->clock.cool())
      {
        cooled++;
        continue;
      }
      const verdict how= judge(*file);
      if (how == CLOSE)
        return {file, CLOSE};
      if (how == SYNC_FIRST && !found.file)
        found= {file, SYNC_FIRST};
      if (++passed >= MAX_PASSED && found.file)
        break;
    }
    return found;
  }

  /** Check the links.
  @param check  bool(const File&): whether a file may be in the ring
  @return whether the ring is consistent */
  template<class Check> bool validate(Check check) const noexcept
  {
    size_t n= 0;
    if (const File *file= hand)
      do
      {
        if (file->clock.next->clock.prev != file || !check(*file) ||
            ++n > n_files)
          return false;
        file= file->clock.next;
      }
      while (file != hand);
    return n == n_files;
  }
};
