/* SPDX-License-Identifier: GPL-2.0-only */

/*
  lf_pinbox_free() does not free an object that a thread has pinned. It reads only
  pins that a thread has had at some time.
*/

#include <my_global.h>
#include <my_sys.h>
#include <lf.h>
#include "tap.h"

#define OBJECTS LF_PURGATORY_SIZE       /* So many are freed at once */
#define UNUSED 200                      /* In the first part of the array */
#define MANY 300                        /* More pins than in the first part */

static void *object[OBJECTS];
static uint freed;

static void count_freed(void *first, void *last,
                        void *arg __attribute__((unused)))
{
  for (freed++; first != last; freed++)
    first= *(void **) first;
}


/** Free all objects, of which one may be pinned; return how many were freed. */

static uint free_objects(LF_PINS *pins)
{
  uint i;
  freed= 0;
  for (i= 0; i < OBJECTS; i++)
    lf_pinbox_free(pins, &object[i]);
  return freed;
}


int main(int argc __attribute__((unused)), char **argv)
{
  LF_PINBOX pinbox;
  LF_PINS *own, *other, *unused, *many[MANY];
  uint i;

  MY_INIT(argv[0]);
  plan(4);

  lf_pinbox_init(&pinbox, 0, count_freed, NULL);
  own= lf_pinbox_get_pins(&pinbox);
  other= lf_pinbox_get_pins(&pinbox);

  lf_pin(other, 0, &object[7]);
  ok(free_objects(own) == OBJECTS - 1, "an object that another thread has pinned is not freed");
  lf_unpin(other, 0);
  lf_pinbox_put_pins(own);
  own= lf_pinbox_get_pins(&pinbox);

  /* No thread does this. It shows whether the element is read. */
  unused= (LF_PINS *) lf_dynarray_value(&pinbox.pinarray, UNUSED);
  lf_pin(unused, 0, &object[7]);
  freed= free_objects(own);
  lf_unpin(unused, 0);
  ok(freed == OBJECTS, "pins that no thread has ever had are not read");
  lf_pinbox_put_pins(own);
  own= lf_pinbox_get_pins(&pinbox);

  for (i= 0; i < MANY; i++)
    many[i]= lf_pinbox_get_pins(&pinbox);
  lf_pin(many[UNUSED], 1, &object[7]);
  ok(free_objects(own) == OBJECTS - 1,
     "an object that was pinned in the first part of the array is not freed");
  lf_unpin(many[UNUSED], 1);
  lf_pinbox_put_pins(own);
  own= lf_pinbox_get_pins(&pinbox);

  lf_pin(many[MANY - 1], LF_PINBOX_PINS - 1, &object[7]);
  ok(free_objects(own) == OBJECTS - 1,
     "an object that was pinned beyond the first part is not freed");
  lf_unpin(many[MANY - 1], LF_PINBOX_PINS - 1);

  lf_pinbox_put_pins(own);
  lf_pinbox_put_pins(other);
  for (i= 0; i < MANY; i++)
    lf_pinbox_put_pins(many[i]);
  lf_pinbox_destroy(&pinbox);
  my_end(0);
  return exit_status();
}
