// A new policy: the same fields over a draft of its own.
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Failure } from '../../api/failure';
import { queryClient } from '../../api/query';
import { Card } from '../../parts/Card';
import { CodeEditor } from '../../parts/code';
import { DraftBar, DraftOffer, ReviewSheet, useDraft, type Publishing } from '../../parts/draft';
import { FieldProblems } from '../../parts/fields';
import { Needs } from '../../parts/Needs';
import { Page } from '../../parts/Page';
import { AccessTab } from './Access';
import { PolicyFields } from './Form';
import { Effect, ProblemList } from './One';
import css from './policies.module.css';
import { batchOf, create, idOf, loadEffect, validate } from './read';
import { text as t } from './text';

const empty = `{
  "name": "",
  "rate": 0,
  "per": 0,
  "quota_max": -1,
  "quota_renewal_rate": 0,
  "access_rights": {}
}
`;

export function NewPolicy() {
  return (
    <Page title={t.create}>
      <Needs role="editor" say>
        <Making />
      </Needs>
    </Page>
  );
}

function Making() {
  const draft = useDraft({ id: 'policy:new', base: { text: empty, etag: '' }, validate: (text, signal) => (text === empty ? Promise.resolve([]) : validate(text, signal)) });
  const [reviewing, setReviewing] = useState(false);
  const navigate = useNavigate();
  return (
    <FieldProblems problems={draft.problems}>
      <div className={css.stack}>
        <DraftOffer draft={draft} />
        {draft.problems.length > 0 && draft.changed && <ProblemList draft={draft} />}
        <PolicyFields draft={draft} disabled={false} fresh />
        <AccessTab draft={draft} may />
        <Card title={t.tabs.raw}>
          <p className="muted">{t.raw.help}</p>
          <CodeEditor label={t.raw.label} language="json" value={draft.text} onChange={draft.setText} problems={draft.problems} lines={12} />
        </Card>
      </div>
      <DraftBar draft={draft} onReview={() => setReviewing(true)} within="/policies/new" />
      {reviewing && (
        <ReviewSheet
          what={t.what(draft.get<string>('name') || t.create)}
          draft={draft}
          effect={async (text, signal) => <Effect effect={await loadEffect(text, signal)} />}
          batch={batchOf}
          replayAs={draft.broken ? undefined : idOf(draft.text)}
          publish={async (it: Publishing) => {
            const made = await create(it);
            await queryClient.invalidateQueries({ queryKey: ['policies'] });
            draft.discard();
            setTimeout(() => void navigate({ to: `/policies/${encodeURIComponent(made.id)}` }));
            return made;
          }}
          reload={() => Promise.reject(new Failure(409, 'Another policy has this id: change it.', 'POST', '/api/portal/policies'))}
          onDone={() => setReviewing(false)}
          onClose={() => setReviewing(false)}
        />
      )}
    </FieldProblems>
  );
}
