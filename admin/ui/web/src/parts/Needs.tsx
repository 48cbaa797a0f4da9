import type { ReactNode } from 'react';
import { useUser, roleAllows, type Role } from '../app/session';
import { t } from '../text/en';

/** Draws verbs for those whose role allows them; with `say`, others read which role may. */
export function Needs({ role, say, children }: { role: Role; say?: boolean; children: ReactNode }) {
  const user = useUser();
  if (roleAllows(user.role, role)) return children;
  return say ? <span className="muted">{t.role.needs(t.role.names[role]!, t.role.names[user.role] ?? user.role)}</span> : null;
}
