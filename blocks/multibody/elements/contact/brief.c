/* Compliant contacts that a solver passes in too few steps.
 *
 * A contact that lasts for few steps of fixed length gains or loses energy: an elastic collision of a Hertz contact in n steps of RK4
 * changes its energy by 6 % for n = 3, 0.3 % for n = 6, and 0.03 % for n = 12. How long a contact lasts follows from the speed at which
 * it begins, which nobody knows before the run. So steps are counted while a contact lasts, by its mode, which costs nothing. */
#include "blocks/multibody/kernel/multibody.h"

/* Steps of which a contact needs more; and the part of contacts with fewer from which on they are reported: single ones may be touches
   without energy, such as those of a rolling shape that changes its place. */
enum { BRIEF_STEPS = 6 };
static const double BRIEF_PART = 0.1;
static const double BRIEF_ROUNDING = 1e-6; /* of a step: a start at the border */

static const double BEFORE = -1.0; /* steps of a contact that may have begun before the run */

void mb_start_brief(double *contact) { contact[MB_CONTACT_STEPS] = BEFORE; }

void mb_count_contact(double *contact, bool touches, double t) {
    const double steps = contact[MB_CONTACT_STEPS];
    if (touches) {
        if (steps != BEFORE) contact[MB_CONTACT_STEPS] = steps + 1.0;
        contact[MB_CONTACT_UNTIL] = t;
        return;
    }
    if (steps > 0.0) contact[MB_CONTACT_PARTED] += 1.0;
    if (steps > 0.0 && steps <= BRIEF_STEPS) {
        const double length = contact[MB_CONTACT_UNTIL] - contact[MB_CONTACT_FROM];
        contact[MB_CONTACT_BRIEF] += 1.0;
        if (length > contact[MB_CONTACT_BRIEF_LENGTH]) {
            contact[MB_CONTACT_BRIEF_LENGTH] = length;
            contact[MB_CONTACT_BRIEF_TIME] = contact[MB_CONTACT_UNTIL];
        }
    }
    contact[MB_CONTACT_STEPS] = 0.0;
    contact[MB_CONTACT_FROM] = t;
}

bool mb_is_brief(const double *contact, double step) {
    return contact[MB_CONTACT_BRIEF] >= fmax(1.0, BRIEF_PART * contact[MB_CONTACT_PARTED]) &&
           contact[MB_CONTACT_BRIEF_LENGTH] > BRIEF_ROUNDING * step;
}
